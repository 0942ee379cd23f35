import { describe, expect, it } from 'vitest'
import { MASK, SecretMask } from '../../../src/core/index.ts'
import { BODY_BYTES, BodyCopy } from '../../../src/inspect/body-copy.ts'
import { SecretTexts } from '../../../src/inspect/secret-texts.ts'
import { seeded } from '../../support/seeded.ts'

const TOKEN68 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/'
const PRINTABLE = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index)).join('')

const hex = (text: string, digits: number): string => text.charCodeAt(0).toString(16).padStart(digits, '0')
const each = (pattern: RegExp, write: (one: string) => string) => (text: string) => text.replace(pattern, write)
const json = (text: string): string => JSON.stringify(text).slice(1, -1)
const base64 = (before: string) => (text: string) => Buffer.from(`${before}${text}."}`).toString('base64')

/** How a backend may write a text. */
const SPELLINGS: Readonly<Record<string, (text: string) => string>> = {
  'as it is': (text) => text,
  JSON: json,
  'JSON of .NET': (text) => json(text).replace(/[+'&<>]/g, (one) => `\\u${hex(one, 4).toUpperCase()}`),
  'JSON of Gson': (text) => json(text).replace(/[=<>&']/g, (one) => `\\u${hex(one, 4)}`),
  'JSON of PHP': (text) => json(text).replaceAll('/', String.raw`\/`),
  'JSON, all escaped': each(/./gs, (one) => `\\u${hex(one, 4)}`),
  'hex escapes': each(/./gs, (one) => `\\x${hex(one, 2)}`),
  'braced escapes': each(/./gs, (one) => `\\u{${hex(one, 1)}}`),
  address: encodeURIComponent,
  'address, all escaped': each(/./gs, (one) => `%${hex(one, 2).toUpperCase()}`),
  HTML: each(/[^a-z0-9]/gi, (one) => `&#${one.charCodeAt(0)};`),
  base64: base64(''),
  'base64, second offset': base64('x'),
  'base64, third offset': base64('{"'),
  base64url: (text) => Buffer.from(`?${text}`).toString('base64url'),
  'base64 in an address': (text) => encodeURIComponent(base64('id:')(text)),
  hex: (text) => Buffer.from(text).toString('hex'),
  'hex in capitals': (text) => Buffer.from(text).toString('hex').toUpperCase(),
}

/** Decodings of a text: escapes and encodings undone, one layer at each depth. */
function readings(text: string, depth = 1): string[] {
  if (depth === 0) return [text]
  const undone = [
    text.replaceAll(/\\+u\{?([0-9a-f]{1,4})\}?/gi, (_, digits: string) =>
      String.fromCharCode(Number.parseInt(digits, 16)),
    ),
    text.replaceAll(/\\+x([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16))),
    text.replaceAll(/%([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16))),
    text.replaceAll(/&#(\d+);/g, (_, digits: string) => String.fromCharCode(Number(digits))),
    text.replaceAll(/\\(["\\/])/g, '$1'),
    text.replaceAll(/([0-9a-f]{2}):?/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16))),
    ...[0, 1, 2, 3].flatMap((phase) =>
      (text.match(/[\w+/-]{8,}/g) ?? []).map((run) => Buffer.from(run.slice(phase), 'base64').toString('latin1')),
    ),
  ]
  return [text, ...new Set(undone.filter((one) => one !== text).flatMap((one) => readings(one, depth - 1)))]
}

const holds = (text: string, secret: string): boolean => {
  for (let at = 0; at + 12 <= secret.length; at++) if (text.includes(secret.slice(at, at + 12))) return true
  return false
}

const BUDGET = { take: () => true, release: () => undefined }

describe('a secret', () => {
  it.each(Object.entries(SPELLINGS))('written as %s, in any pieces, leaves no 12 characters', (name, write) => {
    const below = seeded(name.length * 7919)
    for (let round = 0; round < 12; round++) {
      const alphabet = round % 3 === 2 ? PRINTABLE.replace('\\', '') : TOKEN68
      const secret = Array.from({ length: 16 + below(60) }, () => alphabet[below(alphabet.length)]).join('')
      for (const type of ['application/json', 'text/event-stream']) {
        const texts = new SecretTexts()
        texts.add(secret)
        const copy = new BodyCopy({ contentType: type, encoding: undefined }, texts, BUDGET)
        const body = Buffer.from(`data: {"before":"it said ${write(secret)} to us"}\n\ndata: more\n\n`)
        for (let at = 0; at < body.length;) {
          const to = at + 1 + below(round < 6 ? 7 : 90)
          copy.add(body.subarray(at, to))
          at = to
        }
        const { text } = copy.end()
        expect([secret, text.includes(MASK), text.startsWith('data: {"before":"it said ')]).toEqual([
          secret,
          true,
          true,
        ])
        const left = readings(text, round < 2 ? 2 : 1).filter((reading) => holds(reading, secret))
        expect([secret, text, left]).toEqual([secret, text, []])
      }
    }
  })

  it('in JSON within JSON is found where no writer escapes its characters', () => {
    const mask = new SecretMask()
    mask.add('b1946ac92492d2347c6235b4d2611184')
    mask.add('with/slash+and=more-of-it')
    expect(mask.maskIn(json(json('{"a":"b1946ac92492d2347c6235b4d2611184"}')))).toContain(`:\\\\\\"${MASK}`)
    expect(mask.maskIn(json(String.raw`{"a":"with\u002fslash"}`))).toContain('slash')
  })

  // Base64 of `~` has a `+`: both ends of the secret differ between the alphabets.
  it.each(['', '?', '??'])('in base64url after %j is found by ends that base64 writes differently', (before) => {
    const mask = new SecretMask()
    mask.add('~~~~a-secret-of-alice-0123456789~~~~')
    const text = Buffer.from(`${before}~~~~a-secret-of-alice-0123456789~~~~`).toString('base64url')
    expect(text.match(/-/g)?.length).toBeGreaterThan(1)
    expect(mask.maskIn(text)).toContain(MASK)
  })

  it('that is cut leaves no 12 characters either', () => {
    const mask = new SecretMask()
    mask.add('b1946ac92492d2347c6235b4d2611184')
    expect(mask.maskIn('the token b1946ac92492d2347c… is unknown')).toBe('the token [masked]… is unknown')
    expect(mask.maskIn('the token …d2347c6235b4d2611184 is unknown')).toBe('the token …[masked] is unknown')
    expect(mask.maskIn('b1946ac9249 is no token')).toBe('b1946ac9249 is no token')
  })

  it('of plain words takes none of them from other texts, and is found whole', () => {
    const mask = new SecretMask()
    mask.add('my-bearer-token-that-is-no-secret')
    mask.add('correct-horse')
    expect(mask.maskIn('POST /bearer-token/mcp')).toBe('POST /bearer-token/mcp')
    expect(mask.maskIn('it was my-bearer-token-that-is, by correct%2Dhorse')).toBe('it was [masked], by [masked]')
  })

  it('goes with nothing of what is around it, nor half a character', () => {
    const mask = new SecretMask()
    mask.add('pässwörd-of-alice')
    expect(mask.maskIn('ü"pässwörd-of-alice"ü')).toBe('ü"[masked]"ü')
    expect(mask.maskIn(String.raw`ü"p\u00e4ssw\u00F6rd-of-alice"ü`)).toBe('ü"[masked]"ü')
    mask.add('key-with-😀-inside')
    expect(mask.maskIn(String.raw`<key-with-\ud83d\uDE00-inside>`)).toBe('<[masked]>')
  })
})

describe('masking', () => {
  it('takes no longer for a hostile text than for another of its size', () => {
    const mask = new SecretMask()
    mask.add('a'.repeat(4096))
    for (let index = 0; index < 200; index++) mask.add(`cookie-${index}-of-a-user-${'ab'.repeat(index % 17)}`)
    for (const piece of [
      'a',
      'aaaaaaaaaaab',
      '\\',
      '\\u',
      '%25',
      '&#',
      '\\u{',
      'YWFhYWFh',
      '6161',
      '%61',
      '\0',
      '; ',
      ':',
    ]) {
      const text = piece.repeat(Math.ceil((4 * BODY_BYTES) / piece.length))
      const begun = process.cpuUsage()
      mask.maskIn(text)
      const { user } = process.cpuUsage(begun)
      expect([piece, user < 3_000_000]).toEqual([piece, true])
    }
  }, 60_000)
})
