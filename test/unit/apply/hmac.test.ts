import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { hmac } from '../../../src/apply/sigv4.ts'

describe('HMAC-SHA-256', () => {
  // RFC 4231 §4, test cases 1, 2, 6 and 7.
  test.each([
    [Buffer.alloc(20, 0x0b), 'Hi There', 'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7'],
    [
      Buffer.from('Jefe'),
      'what do ya want for nothing?',
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    ],
    [
      Buffer.alloc(131, 0xaa),
      'Test Using Larger Than Block-Size Key - Hash Key First',
      '60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54',
    ],
    [
      Buffer.alloc(131, 0xaa),
      'This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed before being used by the HMAC algorithm.',
      '9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2',
    ],
  ])('RFC 4231 %#', (key, text, expected) => {
    expect(hmac(key, text, 'hex')).toBe(expected)
    expect(hmac(key, text, 'buffer').toString('hex')).toBe(expected)
  })

  test.each([0, 1, 31, 32, 63, 64, 65, 200])('agrees with node:crypto for keys of %i bytes', (length) => {
    const key = Buffer.alloc(length, 0x5a)
    expect(hmac(key, 'text', 'hex')).toBe(createHmac('sha256', key).update('text').digest('hex'))
  })
})
