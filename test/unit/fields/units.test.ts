import { assert, constantFrom, nat, property } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseGoDuration, parseSize } from '../../../src/fields/index.ts'

describe('Go durations', () => {
  test.each([
    ['0s', 0],
    ['1ns', 1],
    ['999us', 1],
    ['1ms', 1],
    ['1.5ms', 2],
    ['1s', 1_000],
    ['0.1s', 100],
    ['1.1s', 1_100],
    ['2.3s', 2_300],
    ['1m30s', 90_000],
    ['1h1m1s1ms', 3_661_001],
    ['168h', 604_800_000],
    ['1000000ns', 1],
    ['3µs', 1],
  ])('%s is %d ms, rounded up', (text, milliseconds) => {
    expect(parseGoDuration(text)).toBe(milliseconds)
  })

  test.each([
    '',
    's',
    '1',
    '1d',
    '-1s',
    '+1s',
    '1 s',
    '1s ',
    '.5s',
    '1e3s',
    '1.2.3s',
    '9999999h',
    `${'9'.repeat(70)}s`,
  ])('%j is none', (text) => {
    expect(parseGoDuration(text)).toBeUndefined()
  })

  test('whole units are exact', () => {
    const units = [
      ['ms', 1],
      ['s', 1_000],
      ['m', 60_000],
      ['h', 3_600_000],
    ] as const
    assert(
      property(nat(100_000), constantFrom(...units), (amount, [unit, factor]) => {
        expect(parseGoDuration(`${amount}${unit}`)).toBe(amount * factor)
      }),
      { seed: 7 },
    )
  })
})

describe('sizes', () => {
  test.each([
    ['0', 0],
    ['512', 512],
    ['16Ki', 16_384],
    ['10Mi', 10_485_760],
    ['1Gi', 1_073_741_824],
    ['1.5Ki', 1_536],
    ['10k', 10_000],
    ['2M', 2_000_000],
    ['0.1Ki', 103],
  ])('%s is %d bytes', (text, bytes) => {
    expect(parseSize(text)).toBe(bytes)
  })

  test.each(['', 'Ki', '1KiB', '1kb', '-1', '1e3', ' 1', '1 Ki', '99999999Ti'])('%j is none', (text) => {
    expect(parseSize(text)).toBeUndefined()
  })
})
