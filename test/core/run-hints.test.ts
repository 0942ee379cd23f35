import { describe, expect, it } from 'vitest'
import { SecretMask, secretSet } from '../../src/core/index.ts'
import { encodedRuns } from '../../src/core/masking/encoded-runs.ts'
import { folded } from '../../src/core/masking/folded-bytes.ts'
import { mayHold } from '../../src/core/masking/run-hints.ts'
import { seeded } from '../support/seeded.ts'

const SIXTY_FOUR = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** All readings of all runs of a text, one run after the other, bit by bit: slow, and without any shortcut. */
function readingsOf(text: string, bytes: number): Buffer[] {
  const read = (runs: RegExp, between: RegExp, bits: number, valueOf: (one: string) => number): Buffer[] => {
    const long = (text.match(runs) ?? [])
      .map((run) => run.replace(between, ''))
      .filter(({ length }) => length >= Math.ceil((bytes * 8) / bits))
    return Array.from({ length: bits === 6 ? 4 : 2 }, (_, phase) =>
      Buffer.concat(
        long.map((run) => {
          const written = Array.from(run.slice(phase), (one) => valueOf(one).toString(2).padStart(bits, '0')).join('')
          return Buffer.from((written.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)))
        }),
      ),
    )
  }
  return [
    ...read(/[\w+/\-\r\n]+/g, /[\r\n]/g, 6, (one) => SIXTY_FOUR.indexOf(one === '-' ? '+' : one === '_' ? '/' : one)),
    ...read(/[\da-fA-F\r\n :,-]+/g, /[\r\n :,-]/g, 4, (one) => Number.parseInt(one, 16)),
  ]
}

/** What `SecretMask.isIn` promises, of secrets that are no plain words. */
function holds(text: Buffer, secrets: readonly Buffer[], depth = 2): boolean {
  const isIn = (bytes: Buffer): boolean =>
    secrets.some((secret) => {
      if (secret.length < 12) return bytes.includes(secret)
      for (let at = 0; at + 12 <= secret.length; at++) if (bytes.includes(secret.subarray(at, at + 12))) return true
      return false
    })
  const fold = folded(text)?.bytes ?? text
  if (isIn(text) || isIn(fold)) return true
  if (depth === 0) return false
  return readingsOf(fold.toString('latin1'), Math.min(12, ...secrets.map(({ length }) => length))).some(
    (bytes) =>
      isIn(bytes) ||
      (bytes.toString('latin1').match(/[\t-\r -~]{16,}/g) ?? []).some((one) =>
        holds(Buffer.from(one, 'latin1'), secrets, depth - 1),
      ),
  )
}

type Write = (bytes: Buffer, below: (most: number) => number) => string

const WRITTEN: readonly Write[] = [
  (bytes) => bytes.toString('latin1'),
  (bytes) => bytes.toString('base64'),
  (bytes) => bytes.toString('base64url'),
  (bytes, below) => bytes.toString('base64').replaceAll(new RegExp(`.{${5 + below(30)}}`, 'g'), '$&\r\n'),
  (bytes, below) => bytes.toString('base64').replaceAll(new RegExp(`.{${8 + below(12)}}`, 'g'), '$&","'),
  (bytes, below) => bytes.toString('base64').slice(below(4)),
  (bytes) => bytes.toString('hex'),
  (bytes, below) => bytes.toString('hex').replaceAll(/..(?=.)/g, `$&${[':', ' ', '-', ', '][below(4)]}`),
  (bytes, below) => bytes.toString('hex').replaceAll(new RegExp(`.{${12 + below(12)}}`, 'g'), '$&; '),
  (bytes) => encodeURIComponent(bytes.toString('base64')),
  (bytes) => Buffer.from(`{"a":"${bytes.toString('base64')}"}`).toString('base64'),
  (bytes) => Buffer.from(`{"a":"${bytes.toString('hex')}"}`).toString('base64url'),
  (bytes) => Buffer.from(`is it ${bytes.toString('base64')}?`).toString('hex'),
]
const AROUND = [
  '',
  'x-',
  'content-type\n',
  'application/json, text/event-stream',
  '{"id":1,"of":"',
  '": "',
  ' ',
  '00-',
  '=',
]

describe('a secret that is looked for without decoding', () => {
  it('is found wherever reading everything finds it, and nowhere else', () => {
    const below = seeded(371)
    const alphabets = ['ABCDEFGHJKLMNPQRSTUVWXYZ23456789', 'AB', 'ÄÖÜß€ABC1']
    const random = (length: number, alphabet: string): string =>
      Array.from({ length }, () => alphabet[below(alphabet.length)]).join('')
    let found = 0
    const rounds = 3000
    for (let round = 0; round < rounds; round++) {
      const secrets = Array.from({ length: 1 + below(2) }, () =>
        Buffer.from(random(6 + below(below(2) === 0 ? 8 : 50), alphabets[below(3)] ?? '')),
      )
      const mask = new SecretMask()
      for (const secret of secrets) mask.add(secret.toString())
      const [secret = Buffer.alloc(0)] = secrets
      const from = below(3) === 0 ? below(secret.length) : 0
      const part = secret.subarray(from, from + (below(2) === 0 ? secret.length : 9 + below(8)))
      const wanted = Buffer.concat([
        Buffer.from(random(below(9), 'xyzQ/1')),
        part,
        Buffer.from(random(below(9), 'xyzQ')),
      ])
      const written = WRITTEN[below(WRITTEN.length)]?.(wanted, below) ?? ''
      const around = (): string => `${AROUND[below(AROUND.length)]}${AROUND[below(AROUND.length)]}`
      const text = `${around()}${around()}${written}${around()}`
      const wants = holds(Buffer.from(text), secrets)
      expect([round, secret.toString(), text, mask.isIn(text)]).toEqual([round, secret.toString(), text, wants])
      if (wants) found++
    }
    expect(Math.min(found, rounds - found)).toBeGreaterThan(500)
  }, 60_000)

  it.each([6, 9, 11, 12, 13, 17])('of %i bytes is found where a run ends within it and the next goes on', (length) => {
    const secret = 'K7-QX2_PLM9ZRWT4B'.slice(0, length)
    const mask = new SecretMask()
    mask.add(secret)
    for (let round = 0; round < 3 * (Math.min(length, 12) - 1); round++) {
      const at = 1 + Math.floor(round / 3)
      // Around it is nothing that is a text in any reading.
      const begin = Buffer.from(`${'\xFF'.repeat(15 + (round % 3))}${secret.slice(0, at)}`, 'latin1')
      const end = Buffer.from(`${secret.slice(at)}${'\xFF'.repeat(15)}`, 'latin1')
      for (const encoding of ['base64', 'base64url', 'hex'] as const) {
        const text = `${begin.toString(encoding)}","${end.toString(encoding)}`
        expect([text, mask.isIn(text)]).toEqual([text, true])
      }
    }
  })

  it('of a request is in none of its usual headers, so that nothing of them is decoded', () => {
    const head = [
      'host\nmcp.example.com\ncontent-type\napplication/json\naccept\napplication/json, text/event-stream',
      'mcp-protocol-version\n2025-11-25\nuser-agent\nMozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101',
      'traceparent\n00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\nx-forwarded-for\n203.0.113.7',
      'x-request-id\n3f0c1f3e-7f4a-4a3c-9a54-0123456789ab\ndate\nThu, 26 Nov 2026 13:00:00 GMT\nvia\n1.1 extauth',
    ].join('\n')
    for (const secret of ['a-token', 'q7Yt2-Zx9.LmN4_pR8sVwK1uJ6hG3fD5', 'correct-horse-battery-staple']) {
      const sets = [secretSet([secret])]
      const runs = encodedRuns(Buffer.from(head), sets[0]?.shortest ?? 0)
      expect(runs).toHaveLength(2)
      expect(runs.map((one) => mayHold(Buffer.from(head), one, sets, 16))).toEqual([false, false])
    }
  })
})
