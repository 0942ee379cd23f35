import { describe, expect, it } from 'vitest'
import { protectedResourceMetadata } from '../../../src/authenticate/index.ts'
import { once } from '../../../src/fields/index.ts'
import { authSection } from '../../../src/resources/index.ts'

const schema = once(authSection)
const resourceUrl = 'https://registry.example.com/mcp'
const oauth = (more: object = {}) =>
  schema().parse({
    mode: 'oauth',
    oauth: {
      resourceUrl,
      providers: [
        { name: 'a', issuerUrl: 'https://a.example.com/', audience: 'x' },
        { name: 'b', issuerUrl: 'https://b.example.com', audience: 'x' },
        { name: 'c', issuerUrl: 'https://b.example.com', audience: 'y' },
      ],
      ...more,
    },
  })

describe('protected resource metadata', () => {
  it('has the five fields of the specification, each issuer once and as it is written', () => {
    const auth = oauth({ resourceDocumentation: 'https://docs.example.com' })
    expect(protectedResourceMetadata({ resourceUrl, auth })).toEqual({
      resource: resourceUrl,
      authorization_servers: ['https://a.example.com/', 'https://b.example.com'],
      scopes_supported: ['mcp-registry:read', 'mcp-registry:write'],
      bearer_methods_supported: ['header'],
      resource_documentation: 'https://docs.example.com',
    })
  })

  it('uses the resource and the documentation of the serving component', () => {
    const document = protectedResourceMetadata({
      resourceUrl: 'https://mcp.example.com/github',
      auth: oauth(),
      resourceDocumentation: 'https://mcp.example.com/openapi.json',
    })
    expect(document).toMatchObject({
      resource: 'https://mcp.example.com/github',
      resource_documentation: 'https://mcp.example.com/openapi.json',
    })
  })

  it('leaves out what has no elements (RFC 9728 §3.2)', () => {
    expect(Object.keys(protectedResourceMetadata({ resourceUrl, auth: oauth({ scopesSupported: [] }) }))).toEqual([
      'resource',
      'authorization_servers',
      'bearer_methods_supported',
    ])
  })

  it('names no authorization servers in mode anonymous', () => {
    expect(protectedResourceMetadata({ resourceUrl, auth: { mode: 'anonymous' } })).toEqual({
      resource: resourceUrl,
      bearer_methods_supported: ['header'],
    })
  })
})
