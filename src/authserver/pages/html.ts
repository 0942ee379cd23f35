/** Text that is markup already. Whatever is put into `html` without being one is escaped. */
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

/** Characters that turn text around, join it or can't be seen: what somebody else chose must look like what it is. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu

/** Marks above and below a letter: as many as any script needs; more would be painted over other lines. */
const STACKED = /(\p{M}{3})\p{M}+/gu
/** A mark at the start stands on what is before the text. */
const LEADING = /^\p{M}/u

const escaped = (text: string): string =>
  text
    .replace(INVISIBLE, '\u{FFFD}')
    .replace(STACKED, '$1\u{FFFD}')
    .replace(LEADING, '\u{25CC}$&')
    .replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '')

/** Markup with values in it: `` html`<p>${name}</p>` ``. A text is escaped for element content and for quoted attributes. */
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
