"""The HTTP cases beside the checkout, as checks in our own words. Requests come from there, expectations are here."""
