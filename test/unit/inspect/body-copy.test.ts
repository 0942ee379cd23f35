import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { BODY_BYTES, BodyCopy } from '../../../src/inspect/body-copy.ts'
import { SecretTexts } from '../../../src/inspect/secret-texts.ts'

const SECRET = 'secret-of-the-request-0123456789'

function copyOf(contentType: string | undefined, options: { encoding?: string; roomBytes?: number } = {}) {
  const texts = new SecretTexts()
  texts.add(SECRET)
  let left = options.roomBytes ?? 1e9
  const start = left
  const budget = {
    take: (bytes: number) => (bytes > left ? false : ((left -= bytes), true)),
    release: (bytes: number) => void (left += bytes),
  }
  const copy = new BodyCopy({ contentType, encoding: options.encoding }, texts, budget)
  return { copy, freed: () => left === start }
}

describe('a copy of a body', () => {
  it('is masked whole, however the secret was split', () => {
    const { copy, freed } = copyOf('application/json')
    for (const character of `{"a":"${SECRET}","b":"ü"}`) copy.add(Buffer.from(character))
    expect(copy.shown().text).toBe('')
    expect(copy.end()).toEqual({ text: '{"a":"[masked]","b":"ü"}', bytes: 49, cut: undefined })
    expect(freed()).toBe(true)
  })

  it('of an event stream grows line by line', () => {
    const { copy } = copyOf('text/event-stream; charset=utf-8')
    const grown: string[] = []
    copy.onGrowth = (text) => grown.push(text)
    copy.add(Buffer.from(`data: one\n\ndata: ${SECRET.slice(0, 10)}`))
    copy.add(Buffer.from(`${SECRET.slice(10)}\n\nda`))
    expect(grown).toEqual(['data: one\n\n', 'data: [masked]\n\n'])
    expect(copy.end().text).toBe('data: one\n\ndata: [masked]\n\nda')
  })

  it.each(['application/json', 'text/event-stream', undefined])('of %s never ends with half a secret', (type) => {
    for (const before of [BODY_BYTES - 10, BODY_BYTES - 1, BODY_BYTES, BODY_BYTES - SECRET.length]) {
      const { copy } = copyOf(type)
      copy.add(Buffer.from(`${SECRET} ${'x'.repeat(before - SECRET.length - 1)}${SECRET} and more ${'y'.repeat(200)}`))
      const { text, cut } = copy.end()
      expect(cut).toBe('longer')
      expect(text.length).toBeLessThanOrEqual(BODY_BYTES)
      expect(text).not.toContain(SECRET.slice(0, 8))
    }
  })

  it('reports an exhausted budget, and shows no partial secret then', () => {
    const { copy, freed } = copyOf('application/json', { roomBytes: 20 })
    copy.add(Buffer.from(`{"a":"${SECRET.slice(0, 12)}`))
    copy.add(Buffer.from(`${SECRET.slice(12)}"}`))
    expect(copy.end()).toEqual({ text: '', bytes: 40, cut: 'no_room' })
    expect(freed()).toBe(true)
  })

  it('is decompressed, and bounded when it would grow without end', () => {
    const { copy } = copyOf('application/json', { encoding: 'gzip' })
    copy.add(gzipSync(`{"a":"${SECRET}"}`))
    expect(copy.end().text).toBe('{"a":"[masked]"}')
    const bomb = copyOf('application/json', { encoding: 'gzip' })
    bomb.copy.add(gzipSync(Buffer.alloc(32 * 1024 * 1024, 0x20)))
    expect(bomb.copy.end()).toMatchObject({ text: '', cut: 'unknown_encoding' })
  })

  it('is left out if it is not text or in an unknown encoding', () => {
    const image = copyOf('image/png').copy
    image.add(Buffer.from(SECRET))
    expect(image.end()).toEqual({ text: '', bytes: SECRET.length, cut: 'binary' })
    const zstd = copyOf('application/json', { encoding: 'zstd' }).copy
    zstd.add(Buffer.from(SECRET))
    expect(zstd.end()).toEqual({ text: '', bytes: SECRET.length, cut: 'unknown_encoding' })
  })
})
