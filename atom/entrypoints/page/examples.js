// What the page offers to try, and the tools of its example.

export const WEATHER = [
  {
    type: "function",
    function: {
      name: "get_weather",
      description: "Weather of a city",
      parameters: {
        type: "object",
        properties: { city: { type: "string", description: "City name" } },
        required: ["city"],
      },
    },
  },
];

// `needs`: what the served model must have for the example to make sense.
export const EXAMPLES = [
  { question: "Say hello.", about: "an answer", thinking: "off", tools: [] },
  { question: "What is 17 + 25?", about: "a thought", thinking: "on", tools: [], needs: "thinking_switch" },
  { question: "What is the weather in Paris?", about: "a tool call", thinking: "on", tools: WEATHER, needs: "tool_call_format" },
];
