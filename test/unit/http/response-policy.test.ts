import { describe, expect, it } from 'vitest'
import {
  backendPathOf,
  createResponsePolicy,
  isEventStream,
  isUnder,
  rewriteLocation,
} from '../../../src/http/index.ts'

const policy = createResponsePolicy()

describe('the response policy', () => {
  it.each([
    'content-type',
    'content-length',
    'date',
    'vary',
    'mcp-protocol-version',
    'etag',
    'x-amzn-errortype',
    'link',
  ])('sends %s on', (name) => {
    expect(policy({ [name]: 'v' }, 200, []).headers).toEqual([name, 'v'])
  })

  it.each([
    'connection',
    'keep-alive',
    'proxy-connection',
    'te',
    'trailer',
    'transfer-encoding',
    'upgrade',
    'set-cookie',
    'set-cookie2',
    'www-authenticate',
    'proxy-authenticate',
    'authentication-info',
    'alt-svc',
    'access-control-allow-origin',
    'access-control-expose-headers',
    'x-request-id',
  ])('drops %s', (name) => {
    expect(policy({ [name]: ['a', 'b'], kept: '1' }, 200, []).headers).toEqual(['kept', '1'])
  })

  it('drops what Connection names', () => {
    expect(policy({ connection: ['close', 'X-A'], 'x-a': '1', 'x-b': '2' }, 200, []).headers).toEqual(['x-b', '2'])
  })

  it('keeps repeated headers as lines of their own', () => {
    expect(policy({ link: ['a', 'b'] }, 200, []).headers).toEqual(['link', 'a', 'link', 'b'])
  })

  it.each([
    [101, []],
    [103, []],
    [204, []],
    [200, ['content-length', '5']],
    [205, ['content-length', '5']],
    [304, ['content-length', '5']],
  ])('of status %i sends of a length what may be there: %j', (status, expected) => {
    expect(policy({ 'content-length': '5' }, status, []).headers).toEqual(expected)
  })

  it.each([
    ['the credential itself', 's3cret-value', []],
    ['with something around it', 'Bearer s3cret-value; x', []],
    ['another value', 's3cret', ['x-echo', 's3cret']],
  ])('drops a line that holds the credential: %s', (_, value, left) => {
    expect(policy({ 'x-echo': value }, 200, ['s3cret-value']).headers).toEqual(left)
    expect(policy({ 'x-echo': [value, 'b'] }, 200, ['s3cret-value']).headers).toEqual([...left, 'x-echo', 'b'])
  })

  it('drops a location and a session id that hold the credential', () => {
    const head = policy({ location: '/?key=s3cret-value', 'mcp-session-id': 's3cret-value' }, 302, ['s3cret-value'])
    expect([head.location, head.sessionId]).toEqual([undefined, undefined])
  })

  it('looks for a short credential in whole values only', () => {
    expect(policy({ 'content-length': '12', 'x-echo': '2' }, 200, ['2']).headers).toEqual(['content-length', '12'])
  })

  it('hands location and session id to forward, and whether it is a stream of events, which has no length', () => {
    const events = { 'content-type': 'text/event-stream', 'content-length': '5' }
    expect(policy({ location: '/x', 'mcp-session-id': 's', ...events }, 200, [])).toEqual({
      headers: ['content-type', 'text/event-stream', 'x-accel-buffering', 'no'],
      location: '/x',
      sessionId: 's',
      isEvents: true,
    })
  })

  it.each([
    ['text/event-stream', true],
    ['Text/Event-Stream; charset=utf-8', true],
    ['text/event-streams', false],
    ['application/json', false],
    [undefined, false],
  ])('takes %s for an event stream: %s', (type, expected) => {
    expect(isEventStream(type)).toBe(expected)
  })
})

const mapping = (path: string, targetPath: string, exactTarget = false) => ({
  path,
  exactTarget,
  target: { path: targetPath, origin: 'https://api.example.com' },
})

describe('backend paths', () => {
  it.each([
    ['/github', '/mcp', '/github', '/mcp'],
    ['/github', '/mcp', '/github/x%20y', '/mcp/x%20y'],
    ['/github', '/mcp', '/github/', '/mcp/'],
    ['/github/', '/mcp', '/github/x', '/mcp/x'],
    ['/github', '/', '/github', '/'],
    ['/github', '/', '/github/x', '/x'],
    ['/github', '/api/', '/github/x', '/api/x'],
    ['/github', '/a%2Fb', '/github//x', '/a%2Fb//x'],
    ['/', '/mcp', '/', '/mcp'],
    ['/', '/mcp', '/x', '/mcp/x'],
    ['/', '/', '/', '/'],
    ['/', '/', '/x/y', '/x/y'],
  ])('route %s to %s sends %s to %s', (path, target, request, expected) => {
    expect(backendPathOf(mapping(path, target), request)).toBe(expected)
  })

  it('sends exactly the path of the target where the route says so', () => {
    expect(backendPathOf(mapping('/', '/mcp', true), '/whatever')).toBe('/mcp')
  })

  it.each([
    ['/a', '/a', true],
    ['/a', '/a/b', true],
    ['/a', '/ab', false],
    ['/a/', '/a', true],
    ['/', '/x', true],
    ['/a', '/A', false],
  ])('prefix %s holds %s: %s', (prefix, path, expected) => {
    expect(isUnder(prefix, path)).toBe(expected)
  })
})

describe('rewriteLocation', () => {
  const route = mapping('/github', '/mcp')

  it.each([
    ['/mcp/x?y#z', '/github/x?y#z'],
    ['https://api.example.com/mcp', '/github'],
    ['https://API.example.com:443/mcp/a', '/github/a'],
    ['a', '/github/a'],
    ['?q', '/github/s?q'],
    ['/other', undefined],
    ['/mcpx', undefined],
    ['https://evil.example/mcp', undefined],
    ['//evil.example/mcp', undefined],
    ['http://api.example.com/mcp', undefined],
    ['https://user@api.example.com/mcp', undefined],
    ['javascript:alert(1)', undefined],
    ['https://[', undefined],
  ])('turns %s into %s', (location, expected) => {
    expect(rewriteLocation(location, route, '/mcp/s')).toBe(expected)
  })

  it('knows routes at the root and exact targets', () => {
    const at = (path: string, targetPath: string, exactTarget = false) => ({
      path,
      exactTarget,
      target: { path: targetPath, origin: 'http://b:1' },
    })
    expect(rewriteLocation('/mcp', at('/', '/mcp'), '/mcp')).toBe('/')
    expect(rewriteLocation('/x', at('/', '/'), '/')).toBe('/x')
    expect(rewriteLocation('http://b:1//evil.test/x', at('/', '/'), '/')).toBeUndefined()
    expect(rewriteLocation('/mcp//evil.test/x', at('/', '/mcp'), '/mcp')).toBeUndefined()
    expect(rewriteLocation('/mcp//evil.test/x', at('/p', '/mcp'), '/mcp')).toBe('/p//evil.test/x')
    expect(rewriteLocation('/mcp?a', at('/p', '/mcp', true), '/mcp')).toBe('/p?a')
    expect(rewriteLocation('/mcp/x', at('/p', '/mcp', true), '/mcp')).toBeUndefined()
  })
})
