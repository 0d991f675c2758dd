// A request as a command for a shell. The key never stands in it: the command takes it from OPENAI_API_KEY.

export function curlCommand(url, request, needsKey) {
  return [
    `curl -N ${quoted(url)}`,
    "-H 'Content-Type: application/json'",
    ...(needsKey ? ['-H "Authorization: Bearer $OPENAI_API_KEY"'] : []),
    `-d ${quoted(JSON.stringify(request, null, 2))}`,
  ].join(" \\\n  ");
}

function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Put text into the clipboard. Browsers give that to secure pages; elsewhere the older way is tried. */
export async function copyText(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Refused: the older way may still be allowed.
    }
  }
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  return isCopied;
}
