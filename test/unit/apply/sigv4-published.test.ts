import { describe, expect, test } from 'vitest'
import { canonicalRequest, payloadHash, signature, signingKey, stringToSign } from '../../../src/apply/sigv4.ts'
import published from '../../vectors/aws-published.json' with { type: 'json' }

describe("AWS's published examples", () => {
  const { secretAccessKey, date, region } = published
  const day = date.slice(0, 8)

  test.each(published.cases)('$name', ({ method, target, headers, body, service, signature: expected }) => {
    const input = { method, target, headers, payloadHash: payloadHash(Buffer.from(body)) }
    const { text } = canonicalRequest(input)
    const key = signingKey(secretAccessKey, day, region, service)
    expect(signature(key, stringToSign(text, { date, region, service }))).toBe(expected)
  })

  // AWS General Reference, "Examples of how to derive a signing key for Signature Version 4".
  test('the derived key of the documentation', () => {
    const key = signingKey(secretAccessKey, day, region, 'iam')
    expect(Buffer.from(key).toString('hex')).toBe('c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9')
  })

  // AWS General Reference, "Task 1: Create a canonical request" and "Task 2: Create a string to sign".
  test('the canonical request and the string to sign of the documentation', () => {
    const example = published.cases.at(-1)
    const headers = example?.headers ?? []
    const { text, signedHeaders } = canonicalRequest({
      method: 'GET',
      target: '/?Action=ListUsers&Version=2010-05-08',
      headers,
      payloadHash: payloadHash(Buffer.alloc(0)),
    })
    expect(text.split('\n')).toEqual([
      'GET',
      '/',
      'Action=ListUsers&Version=2010-05-08',
      'content-type:application/x-www-form-urlencoded; charset=utf-8',
      'host:iam.amazonaws.com',
      'x-amz-date:20150830T123600Z',
      '',
      'content-type;host;x-amz-date',
      'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    ])
    expect(signedHeaders).toBe('content-type;host;x-amz-date')
    expect(stringToSign(text, { date, region, service: 'iam' }).split('\n')).toEqual([
      'AWS4-HMAC-SHA256',
      '20150830T123600Z',
      '20150830/us-east-1/iam/aws4_request',
      'f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59',
    ])
  })
})
