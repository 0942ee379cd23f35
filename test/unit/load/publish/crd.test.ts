import { describe, expect, test } from 'vitest'
import { parse } from '@bufbuild/cel'
import { CRD_KINDS, customResourceDefinition } from '../../../../src/load/publish/index.ts'
import { crdSchema } from '../../../support/load/publish/validators.ts'

type Json = { [name: string]: unknown }

/** Every part of the schema with the path to it. */
function* parts(schema: Json, path: string): Generator<readonly [string, Json]> {
  yield [path, schema]
  for (const [name, property] of Object.entries((schema.properties ?? {}) as Record<string, Json>))
    yield* parts(property, `${path}.${name}`)
  if (schema.items !== undefined) yield* parts(schema.items as Json, `${path}[]`)
  if (schema.additionalProperties !== undefined) yield* parts(schema.additionalProperties as Json, `${path}{}`)
}

const definitions = CRD_KINDS.map((kind) => ({ kind, definition: customResourceDefinition('extauth.dev', kind) }))
const all = [...parts(crdSchema(), '')]

describe('the CustomResourceDefinition', () => {
  test('names the resource as the specification does', () => {
    const definition = customResourceDefinition('auth.example.com') as { metadata: Json; spec: Json }
    expect(definition.metadata.name).toBe('mcpexternalauthconfigs.auth.example.com')
    expect(definition.spec).toMatchObject({
      group: 'auth.example.com',
      scope: 'Namespaced',
      names: { kind: 'MCPExternalAuthConfig', shortNames: ['extauth', 'mcpextauth'] },
      conversion: { strategy: 'None' },
      versions: [
        { name: 'v1alpha1', served: true, storage: false, subresources: { status: {} } },
        { name: 'v1beta1', served: true, storage: true, subresources: { status: {} } },
      ],
    })
  })

  test.each(definitions)('has one schema for both versions of $kind, so that nothing needs a conversion', (one) => {
    const { versions } = one.definition.spec as { versions: Json[] }
    const [older, newer] = versions.map(({ name: _name, storage: _storage, ...rest }) => rest)
    const texts = (version: unknown) => JSON.stringify(version).match(/"description":"/g)?.length ?? 0
    const said = (version: unknown): unknown =>
      JSON.parse(JSON.stringify(version), (_key, value: unknown) => {
        if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
        return Object.fromEntries(
          Object.entries(value).filter(([name, text]) => name !== 'description' || typeof text !== 'string'),
        )
      })
    expect(said(newer)).toEqual(said(older))
    expect([texts(newer) > 0, texts((older as { schema: unknown }).schema)]).toEqual([true, 0])
  })

  test.each(definitions)('of $kind fits into the annotation of kubectl apply', ({ definition }) => {
    const most = 262_144
    expect(JSON.stringify(definition).length).toBeLessThan(0.98 * most)
  })

  test('says what is in a shape where it comes first, and of each place what it is for', () => {
    const { versions } = customResourceDefinition().spec as { versions: { schema: { openAPIV3Schema: Json } }[] }
    const newest = versions.at(-1)?.schema.openAPIV3Schema ?? {}
    const clients = [...parts(newest, '')].filter(([path]) => path.endsWith('lientAuth'))
    expect(clients.length).toBeGreaterThan(5)
    expect(clients.filter(([, { description }]) => description === undefined)).toEqual([])
    const inside = clients.map(([, { properties }]) => JSON.stringify(properties).includes('"description":'))
    expect(inside).toEqual(clients.map((_one, index) => index === 0))
  })

  test('is a structural schema: every part has a type, none has what an API server refuses', () => {
    // Anything at all is said by the keyword that keeps it.
    const typeless = all
      .filter(
        ([, schema]) => typeof schema.type !== 'string' && schema['x-kubernetes-preserve-unknown-fields'] !== true,
      )
      .map(([path]) => path)
    expect(typeless).toEqual([])
    const refused = [
      '$ref',
      '$schema',
      'definitions',
      'const',
      'patternProperties',
      'dependentRequired',
      'propertyNames',
      'if',
      'oneOf',
      'anyOf',
      'allOf',
      'exclusiveMinimum',
      'uniqueItems',
    ]
    expect(
      all.flatMap(([path, schema]) =>
        refused.filter((keyword) => keyword in schema).map((keyword) => `${path} ${keyword}`),
      ),
    ).toEqual([])
    expect(all.filter(([, schema]) => 'properties' in schema && 'additionalProperties' in schema)).toEqual([])
  })

  test('bounds every list, map and text, so that its rules have a known cost', () => {
    const bound: Record<string, string> = { array: 'maxItems', string: 'maxLength' }
    const unbounded = all.filter(([path, schema]) => {
      const isFree = path === '.apiVersion' || path === '.kind' || 'enum' in schema || schema.format === 'date-time'
      const keyword = 'additionalProperties' in schema ? 'maxProperties' : bound[String(schema.type)]
      return !isFree && keyword !== undefined && !(keyword in schema)
    })
    expect(unbounded.map(([path]) => path)).toEqual([])
  })

  test('its patterns are RE2: no look-around, no back-reference', () => {
    const patterns = all.flatMap(([, schema]) => (typeof schema.pattern === 'string' ? [schema.pattern] : []))
    expect(patterns.length).toBeGreaterThan(20)
    expect(patterns.filter((pattern) => /\(\?[=!<]|\\[1-9]/.test(pattern))).toEqual([])
  })

  test('its rules parse, and every cross-field rule of the specification is among them', () => {
    const rules = all.flatMap(([path, schema]) =>
      ((schema['x-kubernetes-validations'] ?? []) as { rule: string }[]).map(({ rule }) => `${path}  ${rule}`),
    )
    for (const rule of rules) expect(() => parse(rule.split('  ').slice(1).join('  '))).not.toThrow()
    const wanted = [
      '.spec  (self.type == ',
      '.spec.cloudSts  has(self.fallbackRoleArn)',
      '.spec.awsSts  has(self.fallbackRoleArn)',
      '.spec.cloudSts.roleMappings[]  !(has(self.claim) && has(self.matcher))',
      '.spec.embeddedAuthServer  self.upstreamProviders.all(',
      ".spec.embeddedAuthServer.upstreamProviders[]  (self.type == 'oidc') == has(self.oidcConfig)",
      '.spec.embeddedAuthServer.storage.kvstore.sentinelConfig  !(has(self.sentinelAddrs) && has(self.sentinelService))',
      '.spec.embeddedAuthServer.upstreamProviders[].oidcConfig  !has(self.additionalAuthorizationParams)',
    ]
    for (const start of wanted) expect(rules.filter((rule) => rule.startsWith(start))).not.toEqual([])
  })

  test('has the defaults of the specification', () => {
    const defaults = Object.fromEntries(
      all.flatMap(([path, schema]) => ('default' in schema ? [[path, schema.default]] : [])),
    )
    expect(defaults).toMatchObject({
      '.spec.cloudSts.roleClaim': 'groups',
      '.spec.cloudSts.service': 'cloud-mcp',
      '.spec.awsSts.service': 'aws-mcp',
      '.spec.cloudSts.sessionDuration': 3600,
      '.spec.cloudSts.sessionNameClaim': 'sub',
      '.spec.tokenExchange.subjectTokenType': 'access_token',
      '.spec.embeddedAuthServer.tokenLifespans.accessTokenLifespan': '1h',
      '.spec.embeddedAuthServer.tokenLifespans.refreshTokenLifespan': '168h',
      '.spec.embeddedAuthServer.tokenLifespans.authCodeLifespan': '10m',
      '.spec.embeddedAuthServer.storage.type': 'memory',
      '.spec.embeddedAuthServer.storage.kvstore.dialTimeout': '5s',
      '.spec.embeddedAuthServer.storage.kvstore.readTimeout': '3s',
      '.spec.embeddedAuthServer.storage.kvstore.writeTimeout': '3s',
      '.spec.embeddedAuthServer.storage.kvstore.sentinelConfig.db': 0,
      '.spec.embeddedAuthServer.storage.kvstore.sentinelConfig.sentinelService.port': 26_379,
      '.spec.embeddedAuthServer.upstreamProviders[].oidcConfig.scopes': ['openid', 'offline_access'],
    })
  })

  test('the status has the constraints of the specification', () => {
    const find = (path: string): Json | undefined => all.find(([each]) => each === path)?.[1]
    expect(find('.status.conditions[].type')).toMatchObject({ maxLength: 316 })
    const reason = find('.status.conditions[].reason')
    expect(reason).toMatchObject({ maxLength: 1024 })
    expect(new RegExp(String(reason?.pattern)).test('')).toBe(false)
    expect(find('.status.conditions[].message')).toMatchObject({ maxLength: 32_768 })
    expect(find('.status.conditions[].observedGeneration')).toMatchObject({
      type: 'integer',
      format: 'int64',
      minimum: 0,
    })
    expect(find('.status.conditions[]')).toMatchObject({
      required: ['type', 'status', 'lastTransitionTime', 'reason', 'message'],
    })
    expect(find('.status.referencingWorkloads[]')).toMatchObject({ required: ['kind', 'name'] })
    expect(find('.spec.cloudSts.sessionDuration')).toMatchObject({
      type: 'integer',
      format: 'int32',
      minimum: 900,
      maximum: 43_200,
    })
  })
})
