import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RegistryServer } from '../../../src/registry/index.ts'
import { protectedBy } from '../../support/registry/callers.ts'
import { entry, get, SERVERS, start } from '../../support/registry/setup.ts'

interface OpenApi {
  readonly openapi: string
  readonly paths: Readonly<Record<string, { get: Operation }>>
  readonly components: { readonly schemas: Readonly<Record<string, object>>; readonly securitySchemes?: object }
}
interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: object }[]
  readonly responses: Readonly<
    Record<string, { readonly content: Readonly<Record<string, { readonly schema: object }>> }>
  >
  readonly security?: unknown
}

let server: RegistryServer
let document: OpenApi
beforeAll(async () => {
  server = await start([entry('com.example/a', '1.0.0')], { access: protectedBy() })
  document = (await get(server, '/openapi.json')).json as OpenApi
})
afterAll(() => server.drain(0))

const LIST = '/registry/{name}/v0.1/servers'
const parameter = (name: string) => document.paths[LIST]?.get.parameters?.find((one) => one.name === name)

/** Validates a response by its schema in the document. */
function isAsDocumented(path: string, status: number, body: unknown): unknown {
  const schema = document.paths[path]?.get.responses[status]?.content['application/json']?.schema
  expect(schema).toBeDefined()
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  const validate = ajv.compile({ ...schema, components: document.components })
  return validate(body) ? true : validate.errors
}

describe('/openapi.json', () => {
  it('describes every endpoint in OpenAPI 3.1', () => {
    expect(document.openapi).toBe('3.1.0')
    expect(Object.keys(document.paths).toSorted()).toEqual([
      '/.well-known/oauth-protected-resource',
      LIST,
      `${LIST}/{serverName}/versions`,
      `${LIST}/{serverName}/versions/{version}`,
    ])
  })

  it('has the bounds that are enforced', () => {
    expect(parameter('limit')?.schema).toMatchObject({ type: 'integer', minimum: 1, maximum: 100, default: 30 })
    expect(parameter('updated_since')?.schema).toMatchObject({ type: 'string', format: 'date-time' })
    expect(parameter('include_deleted')?.schema).toMatchObject({ type: 'boolean', default: false })
    expect(document.paths[LIST]?.get.parameters?.map(({ name }) => name).toSorted()).toEqual([
      'cursor',
      'include_deleted',
      'limit',
      'name',
      'search',
      'updated_since',
      'version',
    ])
  })

  it('names each schema once, and has no request schemas because no operation has a body', () => {
    const text = JSON.stringify(document)
    const names = Object.keys(document.components.schemas)
    expect(names).toContain('ServerDetail')
    expect(names.filter((name) => !text.includes(`"#/components/schemas/${name}"`))).toEqual([])
  })

  it('asks for a bearer where one is asked for, and nowhere in mode anonymous', async () => {
    expect(document.paths[LIST]?.get.security).toEqual([{ bearer: [] }])
    expect(document.paths['/.well-known/oauth-protected-resource']?.get.security).toBeUndefined()
    const open = await start([])
    const other = (await get(open, '/openapi.json')).json as OpenApi
    await open.drain(0)
    expect(other.paths[LIST]?.get.security).toBeUndefined()
    expect(other.components.securitySchemes).toBeUndefined()
    expect(other.paths[LIST]?.get.responses['401']).toBeUndefined()
  })

  it('is true of the answers', async () => {
    const good = { headers: { authorization: 'Bearer good' } }
    const answers: readonly (readonly [string, string, number])[] = [
      [LIST, SERVERS, 200],
      [LIST, `${SERVERS}?limit=0`, 400],
      [LIST, '/registry/x/v0.1/servers', 404],
      [`${LIST}/{serverName}/versions`, `${SERVERS}/com.example%2Fa/versions`, 200],
      [`${LIST}/{serverName}/versions/{version}`, `${SERVERS}/com.example%2Fa/versions/latest`, 200],
      ['/.well-known/oauth-protected-resource', '/.well-known/oauth-protected-resource', 200],
    ]
    for (const [path, target, status] of answers) {
      const got = await get(server, target, good)
      expect([target, got.status, isAsDocumented(path, status, got.json)]).toEqual([target, status, true])
    }
    const refused = await get(server, SERVERS)
    expect([refused.status, isAsDocumented(LIST, 401, refused.json)]).toEqual([401, true])
  })
})
