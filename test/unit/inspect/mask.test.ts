import { describe, expect, it } from 'vitest'
import { headerKind, maskBody, maskLooks } from '../../../src/core/index.ts'
import { maskQuery, maskTarget } from '../../../src/inspect/mask.ts'
import { pairsOf, searched, unsearchedHead } from '../../../src/inspect/masked-heads.ts'
import { addSecretHeaders, SecretTexts } from '../../../src/inspect/secret-texts.ts'

const JWT = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl'

function maskedHeaders(...given: Parameters<typeof unsearchedHead>): string[] {
  const head = unsearchedHead(...given)
  return pairsOf(searched([head], given[1]).mask(head)).flat()
}

describe('texts that are searched together', () => {
  it('are each masked for what it has, and so is one that was not among them', () => {
    const texts = new SecretTexts()
    texts.add('opaque-token-1234')
    const clean = searched(['/mcp', 'host\na', 'x\nb'], texts)
    expect([clean.isClean('/mcp'), clean.isClean('x\nc')]).toEqual([true, false])
    expect(['host\na', 'by opaque-token-1234', `by ${JWT}`].map((text) => clean.mask(text))).toEqual([
      'host\na',
      'by [masked]',
      'by [masked]',
    ])
    for (const other of [`a ${JWT}`, 'opaque-token-1234', Buffer.from('an opaque-token-1234').toString('base64')]) {
      const parts = ['/mcp', other, 'x\nb']
      const some = searched(parts, texts)
      expect(parts.map((text) => some.isClean(text))).toEqual([false, false, false])
      expect(parts.map((text) => some.mask(text))).toEqual(['/mcp', expect.stringContaining('[masked]'), 'x\nb'])
    }
  })
})

describe('headers', () => {
  it.each([
    'authorization proxy-authorization cookie set-cookie authentication-info x-amz-security-token x-api-key api-key',
    'x-auth-token x-access-token x-secret x-forwarded-access-token x-functions-key ocp-apim-subscription-key',
    'x_api_key sec-websocket-protocol x-session x-client-secret x-amzn-oidc-data x-user-password private-token x-auth',
  ])('are secret by name: %s', (names) => {
    for (const name of names.split(' ')) expect([name, headerKind(name).kind]).toEqual([name, 'secret'])
  })

  it('are shown where their names say nothing of a secret', () => {
    const names =
      'host content-type accept via forwarded x-amz-date mcp-method user-agent www-authenticate x-request-id'
    for (const name of names.split(' ')) expect([name, headerKind(name).kind]).toEqual([name, 'plain'])
  })

  it('keep what helps of a signature and of a session, and nothing that could be used', () => {
    const signature = 'a'.repeat(64)
    const texts = new SecretTexts()
    const authorization = `AWS4-HMAC-SHA256 Credential=ASIAEXAMPLE0001/20261122/eu-west-1/s/aws4_request, SignedHeaders=host, Signature=${signature}`
    expect(
      maskedHeaders(['Authorization', authorization, 'Mcp-Session-Id', '0123456789abcdef0123', 'X-A', 'b'], texts),
    ).toEqual([
      'authorization',
      'AWS4-HMAC-SHA256 Credential=ASIA[masked]/20261122/eu-west-1/s/aws4_request, SignedHeaders=host, Signature=[masked]',
      'mcp-session-id',
      '012345…[masked]',
      'x-a',
      'b',
    ])
  })

  it('that hold a secret of the request are masked whatever their name, and so are secrets in names', () => {
    const texts = new SecretTexts()
    const raw = ['Authorization', `Bearer opaque-token-1234`, 'Cookie', 'a=cookie-value-1; b=cookie-value-2']
    addSecretHeaders(texts, raw, [])
    const headers = ['X-Echo', 'got opaque-token-1234!', 'x-opaque-token-1234', '1', 'X-C', 'cookie-value-2']
    expect(maskedHeaders(headers, texts).join(' ')).toBe('x-echo got [masked]! x-[masked] [masked] x-c [masked]')
  })

  it('that the credential of the route sets are masked', () => {
    expect(maskedHeaders(['X-Custom', 'value'], new SecretTexts(), ['x-custom'])).toEqual(['x-custom', '[masked]'])
  })

  it('are cut only after they are masked', () => {
    const texts = new SecretTexts()
    texts.add('the-secret-of-this-request')
    const value = `${'x'.repeat(4090)}the-secret-of-this-request`
    expect(maskedHeaders(['x-long', value], texts)[1]).toBe(`${'x'.repeat(4090)}[maske…`)
  })
})

describe('addresses', () => {
  it.each([
    ['access_token=abc&x=1', 'access_token=[masked]&x=1'],
    ['a=1&X-Amz-Signature=00ff&X-Amz-Credential=AKIA', 'a=1&X-Amz-Signature=[masked]&X-Amz-Credential=[masked]'],
    ['api%5Fkey=1', 'api%5Fkey=[masked]'],
    ['id=Zm9vYmFyMTIzNDU2Nzg5MDEyMzQ', 'id=[masked]'],
    ['Zm9vYmFyMTIzNDU2Nzg5MDEyMzQ', '[masked]'],
    ['q=hello+world&page=2', 'q=hello+world&page=2'],
  ])('%s', (query, masked) => expect(maskQuery(query)).toBe(masked))

  it('lose tokens in their paths too', () => {
    expect(maskTarget(`/mcp/${JWT}?b=1`)).toBe('/mcp/[masked]?b=1')
  })
})

describe('bodies', () => {
  it.each([
    [`{"a":"${JWT}"}`, '{"a":"[masked]"}'],
    ['{"access_token": "abc", "b": 1}', '{"access_token": "[masked]", "b": 1}'],
    ['{"text":"{\\"client_secret\\":\\"abc\\"}"}', '{"text":"{\\"client_secret\\":\\"[masked]\\"}"}'],
    ['{"password":"a\\"b"}', '{"password":"[masked]"}'],
    ['{"password":"cut of', '{"password":"[masked]"'],
    ['{"set-cookie":["a=b","c=d"]}', '{"set-cookie":"[masked]"}'],
    ['grant_type=x&client_secret=abc&b=1', 'grant_type=x&client_secret=[masked]&b=1'],
    ['Authorization: Bearer abcdefgh', 'Authorization: Bearer [masked]'],
    ['a key ghp_abcdefghijklmnop of theirs', 'a key [masked] of theirs'],
    ['{"tokens":12,"name":"sketch"}', '{"tokens":12,"name":"sketch"}'],
  ])('%s', (text, masked) => expect(maskBody(text)).toBe(masked))

  it('lose a JWT that is cut off', () => {
    expect(maskLooks(`x ${JWT.slice(0, 30)}`)).toBe('x [masked]')
  })

  it('take no longer for a hostile text than for another of its size', () => {
    const hostile = [
      '"token":"',
      '\\\\"token\\\\":\\\\"',
      '\\\\',
      '\\\\"',
      'a_',
      '"a_a-',
      'eyJ',
      'Bearer ',
      '-----BEGIN PRIVATE KEY-----',
      'token=',
      '[[',
    ]
    for (const piece of hostile) {
      const begun = performance.now()
      maskBody(`"token" ${piece.repeat(Math.ceil(65_536 / piece.length))}`)
      expect([piece, performance.now() - begun < 3000]).toEqual([piece, true])
    }
  })
})

describe('secret texts', () => {
  it('are found as they are written in addresses and in JSON', () => {
    const texts = new SecretTexts()
    texts.add('pass"w/ord+1')
    for (const spelling of ['pass"w/ord+1', 'pass%22w%2Ford%2B1', 'pass\\"w/ord+1', 'pass\\"w\\/ord+1'])
      expect(texts.maskIn(`<${spelling}>`)).toBe('<[masked]>')
  })

  it('hold the password of Basic credentials and the value of a cookie that is set', () => {
    const texts = new SecretTexts()
    addSecretHeaders(
      texts,
      ['authorization', `Basic ${btoa('me:hunter2222')}`, 'set-cookie', 'sid=abcdef12; Path=/'],
      [],
    )
    expect(texts.maskIn('hunter2222 abcdef12')).toBe('[masked] [masked]')
  })
})
