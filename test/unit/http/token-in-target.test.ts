import { describe, expect, it } from 'vitest'
import { checkTokenInHost, checkTokenInTarget } from '../../../src/http/index.ts'

const TOKEN = 'eyJhbGciOi.payload-x.sig'
const check =
  (path: string, query: string, ...authorization: string[]) =>
  () =>
    checkTokenInTarget(path, query, authorization)

describe('a token in the request target', () => {
  it.each([
    'access_token=x',
    'a=b&access_token=x',
    'access%5Ftoken=x',
    '%61ccess_token',
    'Access_Token=x',
    'a=b;access_token=x',
    `q=${TOKEN}`,
    `q=a${TOKEN}b&c`,
    `q=${TOKEN.replaceAll('.', '%2E')}`,
  ])('is refused in the query %s', (query) => {
    expect(check('/mcp', query, `Bearer ${TOKEN}`)).toThrow('bad_request')
  })

  it('is refused in the path', () => {
    expect(check(`/mcp/${TOKEN}`, '', `Bearer ${TOKEN}`)).toThrow('bad_request')
    expect(check(`/mcp/${TOKEN.replaceAll('e', '%65')}`, '', 'Bearer other-token-0123456789', TOKEN)).toThrow(
      'bad_request',
    )
  })

  it.each(['', 'token=x', 'my_access_token=x', 'access_token_type=x', 'q=access_token', 'a=%zz'])(
    'is not seen in the query %j',
    (query) => {
      expect(check('/mcp', query, `Bearer ${TOKEN}`)).not.toThrow()
    },
  )

  it('is not seen where a path has a short word in common with it', () => {
    expect(check('/mcp', '', 'Bearer mcp')).not.toThrow()
    expect(check('/mcp', 'a=b')).not.toThrow()
  })

  it('is not seen where path and host are long and contain no token', () => {
    const long = 'a-name-of-32-characters-and-more-than-that'
    expect(check(`/mcp/${long}`, `q=${long}`, `Bearer ${TOKEN}`)).not.toThrow()
    expect(() => checkTokenInHost(`${long}.example`, [`Bearer ${TOKEN}`])).not.toThrow()
    expect(check(`/mcp/${long}`, '', 'Bearer mcp')).not.toThrow()
    expect(() => checkTokenInHost(`mcp.${long}.example`, ['Bearer mcp'])).not.toThrow()
  })

  it('is refused with the error of RFC 6750', () => {
    expect(check(`/mcp/${TOKEN}`, '', `Bearer ${TOKEN}`)).toThrow(
      expect.objectContaining({
        challenge: { error: 'invalid_request' },
        detail: 'the path contains the access token',
      }),
    )
  })

  it('is rejected in the host, which backends receive', () => {
    const checkHost = (host: string, authorization: string) => () => checkTokenInHost(host, [authorization])
    expect(checkHost(`${TOKEN}.localhost:8080`, `Bearer ${TOKEN}`)).toThrow('bad_request')
    expect(checkHost('localhost', `Bearer ${TOKEN}`)).not.toThrow()
    expect(checkHost('localhost', 'Bearer localhost')).not.toThrow()
  })
})
