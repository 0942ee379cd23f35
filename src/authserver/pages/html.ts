/** Escaped markup. The template `html` escapes every other value. */
export class Markup {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Characters that reverse or join text, or are invisible: external text must not be disguised. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu

/** Limits combining marks to three per letter, enough for any script; more would overprint other lines. */
const STACKED = /(\p{M}{3})\p{M}+/gu
/** A leading mark would attach to the preceding text. */
const LEADING = /^\p{M}/u

const escaped = (text: string): string =>
  text
    .replace(INVISIBLE, '\u{FFFD}')
    .replace(STACKED, '$1\u{FFFD}')
    .replace(LEADING, '\u{25CC}$&')
    .replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '')

/** A markup template: `` html`<p>${name}</p>` ``. Strings are escaped for element content and quoted attributes. */
export function html(parts: TemplateStringsArray, ...values: readonly (string | Markup | readonly Markup[])[]): Markup {
  let text = parts[0] ?? ''
  for (const [index, value] of values.entries()) {
    if (typeof value === 'string') text += escaped(value)
    else text += value instanceof Markup ? value.text : value.map((one) => one.text).join('')
    text += parts[index + 1] ?? ''
  }
  return new Markup(text)
}

export const NOTHING = new Markup('')
