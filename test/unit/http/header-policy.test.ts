import { describe, expect, it } from 'vitest'
import { createHeaderPolicy } from '../../../src/http/index.ts'

const TOKEN = 'eyJ0.secret.token'
const policy = createHeaderPolicy(['x-api-key'])
const kept = (...raw: string[]): string[] => policy(raw).headers

describe('the header policy', () => {
  it.each([
    ['Accept', 'application/json, text/event-stream'],
    ['Content-Type', 'application/json'],
    ['Mcp-Session-Id', 's1'],
    ['MCP-Protocol-Version', '2025-11-25'],
    ['Mcp-Method', 'tools/call'],
    ['Mcp-Param-Region', 'eu'],
    ['Last-Event-ID', '7'],
    ['traceparent', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'],
    ['X-Amzn-Trace-Id', 'Root=1'],
    ['Origin', 'http://localhost:3000'],
    ['Sec-WebSocket-Key', 'x'],
    ['X-Request-Id', 'theirs'],
    ['X-Anything', 'é'],
  ])('forwards %s', (name, value) => {
    expect(kept(name, value)).toEqual([name.toLowerCase(), value])
  })

  it.each([
    'Proxy-Authorization',
    'Cookie',
    'Cookie2',
    'X-Amz-Security-Token',
    'X-Amz-Date',
    'x-amz-content-sha256',
    'X-Amzn-Oidc-Data',
    'X-Amzn-Oidc-Accesstoken',
    'X-Amzn-Bedrock-AgentCore-Runtime-User-Id',
    'X-Forwarded-Access-Token',
    'X-Forwarded-User',
    'X-Forwarded-For',
    'X-Forwarded-Host',
    'Forwarded',
    'X-Real-IP',
    'X-Client-IP',
    'True-Client-IP',
    'True_Client_IP',
    'CF-Connecting-IP',
    'CF-Connecting-IPv6',
    'X-Cluster-Client-IP',
    'Fastly-Client-IP',
    'X-Original-URL',
    'X-Original-URI',
    'X-Original-Host',
    'X-Rewrite-URL',
    'x_rewrite_url',
    'X-Auth-Request-Access-Token',
    'X-Auth-Request-Email',
    'X-Api-Key',
    'x_api_key',
    'X_API-KEY',
    'X.Api.Key',
    'x_amz_security_token',
    'Proxy_Authorization',
    'X_Forwarded_For',
    'Host',
    'Content-Length',
    'Transfer-Encoding',
    'Connection',
    'Keep-Alive',
    'Proxy-Connection',
    'TE',
    'Trailer',
    'Upgrade',
    'HTTP2-Settings',
    'Expect',
    'Proxy-Authenticate',
  ])('drops %s, in any case and however often', (name) => {
    expect(kept(name, 'v', name.toUpperCase(), 'w', name.toLowerCase(), 'x', 'A', '1')).toEqual(['a', '1'])
  })

  const JWT = 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9.c2ln'
  it.each<[string, string | undefined]>([
    ['mcp', 'mcp'],
    ['graphql-ws, mcp', 'graphql-ws, mcp'],
    ['mcp, base64url.bearer.authorization.k8s.io.ZXlK', 'mcp'],
    ['authorization.bearer.s3cret,mcp', 'mcp'],
    ['Bearer, s3cret, mcp', 'mcp'],
    ['mcp, access_token, s3cret', 'mcp'],
    ['access_token', undefined],
    [JWT, undefined],
    [`mcp, token.${JWT}, x`, 'mcp, x'],
    [`a , ${JWT},, b`, 'a, b'],
    ['api-key,s3cret', undefined],
  ])('leaves tokens out of Sec-WebSocket-Protocol: %s', (value, left) => {
    expect(kept('Sec-WebSocket-Protocol', value)).toEqual(left === undefined ? [] : ['sec-websocket-protocol', left])
  })

  it('says what was left out and why', () => {
    const dropped: string[] = []
    const lines = Object.entries({
      Connection: 'x-hop',
      'X-Hop': '1',
      'Content-Length': '3',
      Authorization: `Bearer ${TOKEN}`,
      'X-Api-Key': 'k',
      'X-Copy': `the ${TOKEN}`,
      mcp_session_id: 's',
      'X-Forwarded-For': 'a',
      Cookie: 'c',
      'Sec-WebSocket-Protocol': `mcp, ${JWT}`,
      Accept: 'a',
    }).flat()
    policy(lines, (name, rule) => dropped.push(`${name}: ${rule}`))
    expect(dropped.toSorted()).toEqual([
      'authorization: caller_credential',
      'connection: hop_by_hop',
      'content-length: regenerated',
      'cookie: caller_credential',
      'mcp_session_id: other_spelling',
      'sec-websocket-protocol: caller_credential',
      'x-api-key: set_by_route',
      'x-copy: caller_credential',
      'x-forwarded-for: untrusted',
      'x-hop: hop_by_hop',
    ])
  })

  it('gives the values of Authorization to the authenticator only', () => {
    expect(policy(['Authorization', 'Bearer a', 'AUTHORIZATION', 'Basic b', 'X', '1'])).toEqual({
      headers: ['x', '1'],
      authorization: ['Bearer a', 'Basic b'],
    })
  })

  it('drops the caller-sent Authorization also on a route that sets it', () => {
    expect(createHeaderPolicy(['authorization'])(['authorization', 'Bearer a'])).toEqual({
      headers: [],
      authorization: ['Bearer a'],
    })
  })

  it.each([
    [`Bearer ${TOKEN}`, TOKEN],
    [`bearer   ${TOKEN}`, TOKEN],
    [TOKEN, TOKEN],
    ['Basic dXNlcjpwYXNz', 'dXNlcjpwYXNz'],
  ])('drops each header with the raw credentials of %j in it, before or after', (authorization, credentials) => {
    const raw = [
      'X-Copy',
      credentials,
      'X-In',
      `a ${credentials} b`,
      'Authorization',
      authorization,
      'X-Late',
      credentials,
    ]
    expect(kept(...raw, 'X-Other', 'o')).toEqual(['x-other', 'o'])
  })

  it('drops a header that has the raw credentials in its name', () => {
    const opaque = 'Zm9vYmFyYmF6cXV4'
    expect(kept('Authorization', `Bearer ${opaque}`, opaque, '1', `X-${opaque}`, '2', 'X-B', '3')).toEqual(['x-b', '3'])
    expect(kept('Authorization', 'Bearer accept', 'Accept', 'text/html')).toEqual(['accept', 'text/html'])
  })

  it.each(['Mcp_Session_Id', 'mcp-session_id', 'MCP.Session.Id'])(
    'drops %s: only the spelling that is bound to the caller may reach a backend',
    (name) => {
      expect(kept(name, 's-1', 'Mcp-Session-Id', 's-2')).toEqual(['mcp-session-id', 's-2'])
    },
  )

  it('looks at the credentials of every Authorization line', () => {
    expect(
      kept('Authorization', 'Bearer aaa', 'Authorization', 'Bearer bbb', 'X', 'bbb', 'Y', 'aaa', 'Z', 'z'),
    ).toEqual(['z', 'z'])
  })

  it('keeps all when an Authorization line is empty', () => {
    expect(kept('Authorization', '', 'X', 'y')).toEqual(['x', 'y'])
    expect(kept('Authorization', '  ', 'X', 'y')).toEqual(['x', 'y'])
  })

  it('drops the headers that Connection names, in any line of it', () => {
    expect(kept('X-A', '1', 'Connection', 'close, X-A', 'x-b', '2', 'connection', 'X-B', 'X-C', '3')).toEqual([
      'x-c',
      '3',
    ])
  })

  it('leaves everything else alone when Connection names nothing', () => {
    expect(kept('Connection', 'keep-alive', 'Keep', 'yes')).toEqual(['keep', 'yes'])
    expect(kept('Connection', 'Upgrade, Keep-Alive,, close', 'Keep', 'yes')).toEqual(['keep', 'yes'])
  })

  it('keeps repeated headers apart and in order', () => {
    expect(kept('A', '1', 'B', '2', 'a', '3')).toEqual(['a', '1', 'b', '2', 'a', '3'])
  })

  it('decides the same after thousands of different names', () => {
    const own = createHeaderPolicy(['x-api-key'])
    for (let index = 0; index < 5000; index++) expect(own([`x-${index}`, 'v']).headers).toHaveLength(2)
    expect(own(['X-Api-Key', 'v', `x-${'y'.repeat(200)}`, 'v']).headers).toHaveLength(2)
  })
})
