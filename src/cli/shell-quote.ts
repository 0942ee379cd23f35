/** Quotes one word for a POSIX shell (XCU §2.2), only if needed. */
export const shellQuote = (text: string): string =>
  /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
