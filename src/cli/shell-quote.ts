/** Text as one word of a POSIX shell (XCU §2.2): as it is where nothing in it has a meaning there, else in quotes. */
export const shellQuote = (text: string): string =>
  /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
