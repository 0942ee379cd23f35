/**
 * The same program in ASCII alone, because one other character makes V8 keep the whole file at two bytes a character. Throws
 * where an escape would say something else.
 */
export function ascii(code: string): string {
  const odd = /(?:\\|String\.raw\s*`[^`]*)[^\p{ASCII}]/u.exec(code)
  if (odd !== null) throw new Error(`${JSON.stringify(odd[0])} can't be written in ASCII`)
  return code.replace(/[^\p{ASCII}]/gu, (character) =>
    [...Array(character.length).keys()]
      .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`)
      .join(''),
  )
}
