import { describe, expect, test } from 'vitest'
import { createRoleMapper } from '../../../../src/obtain/cloud-sts/role-mapper.ts'
import type { RoleMapping } from '../../../../src/resources/index.ts'
import { claimsOf } from '../../../support/obtain/cloud-sts/support/deps.ts'

const ROLE = 'arn:aws:iam::123456789012:role/reader'
const choose = (mapping: Partial<RoleMapping>, claims: object, config: object = {}) =>
  createRoleMapper({
    roleClaim: 'groups',
    fallbackRoleArn: 'arn:aws:iam::123456789012:role/guest',
    roleMappings: [{ roleArn: ROLE, matcher: 'has(claims.sub)', ...mapping }],
    ...config,
  }).choose(claimsOf({ sub: 'ada', ...claims }))
const team = (more: object = {}) => ({ sessionTags: [{ key: 'Team', value: 'claims.team', ...more }] })

describe('session tags', () => {
  test('are what their expressions give', () => {
    const { attributes } = choose(
      {
        sessionTags: [
          { key: 'Team', value: 'claims.team' },
          { key: 'Who', value: '"mcp/" + claims.sub', transitive: true },
        ],
      },
      { team: 'search' },
    )
    expect(attributes?.tags).toEqual([
      { key: 'Team', value: 'search', transitive: false },
      { key: 'Who', value: 'mcp/ada', transitive: true },
    ])
  })

  test('of a missing claim are no tag only where they are optional', () => {
    expect(choose(team(), {})).toMatchObject({
      refusal: 'role_denied',
      roleArn: undefined,
      by: undefined,
      reason: 'the session tag "Team": there is no such key "team"',
    })
    expect(choose(team({ optional: true }), {})).toMatchObject({ roleArn: ROLE, attributes: { tags: [] } })
    expect(choose(team({ optional: true }), { team: 7 })).toMatchObject({ refusal: 'role_denied' })
  })

  test('of an empty claim refuse unless an empty value is allowed', () => {
    const reason = 'the session tag "Team" is empty; set allowEmpty to allow it'
    expect(choose(team(), { team: '' })).toMatchObject({ refusal: 'role_denied', reason })
    expect(choose(team({ optional: true }), { team: '' })).toMatchObject({ refusal: 'role_denied', reason })
    expect(choose(team({ allowEmpty: true }), { team: '' }).attributes?.tags[0]?.value).toBe('')
  })

  test.each(['a b', 'Ä/ö:1', 'x'.repeat(256), 'a=b+c-d@e.f_g'])('take %j', (value) => {
    expect(choose(team(), { team: value }).attributes?.tags[0]?.value).toBe(value)
  })

  test.each([
    'x'.repeat(257),
    'x'.repeat(10_240),
    'a*b',
    '${aws:username}',
    '"',
    "'",
    '{}',
    'a\nb',
    'a\u0000',
    '<a>',
    'a;b',
    'a?b',
    '#',
    '\\',
    '|',
    7,
    true,
    null,
    [],
    {},
  ])('reject %j, without the fallback', (value) => {
    const choice = choose(team(), { team: value })
    expect(choice).toMatchObject({ roleArn: undefined, refusal: 'role_denied' })
    if (typeof value === 'string' && value.length > 3)
      expect(JSON.stringify(choice.reason)).not.toContain(value.slice(0, 20))
  })

  test('that cost too much refuse', () => {
    const groups = Array.from({ length: 300 }, (_, index) => `g${index}`)
    const value = 'claims.groups.all(g, claims.groups.all(h, h != "z")) ? "a" : "b"'
    expect(choose({ sessionTags: [{ key: 'A', value }] }, { groups })).toMatchObject({ refusal: 'rule_limit' })
  })

  test('of a mapping are in place of those of the config, which hold for the fallback too', () => {
    const config = { sessionTags: [{ key: 'All', value: '"yes"' }], sourceIdentity: 'claims.sub' }
    expect(choose(team(), { team: 'a' }, config).attributes).toMatchObject({
      tags: [{ key: 'Team' }],
      sourceIdentity: 'ada',
    })
    const fallback = choose({ matcher: 'false' }, {}, config)
    expect(fallback).toMatchObject({ by: 'fallback', attributes: { tags: [{ key: 'All', value: 'yes' }] } })
  })
})

describe('a source identity', () => {
  test.each(['ada@example.com', 'ab', 'x'.repeat(64), 'a=b,c.d-e_f+g'])('takes %j', (email) => {
    expect(choose({ sourceIdentity: 'claims.email' }, { email }).attributes?.sourceIdentity).toBe(email)
  })
  test.each(['a', '', 'x'.repeat(65), 'a b', 'a/b', 'a:b', '*', 'ä1', undefined, 7])('refuses %j', (email) => {
    expect(choose({ sourceIdentity: 'claims.email' }, email === undefined ? {} : { email })).toMatchObject({
      refusal: 'role_denied',
    })
  })
})

describe('a session policy', () => {
  const template = JSON.stringify({
    Version: '2012-10-17',
    Statement: [
      {
        Effect: 'Allow',
        Action: 's3:GetObject',
        Resource: 'arn:aws:s3:::data/{claims.team}/*',
        Condition: { StringEquals: { 'aws:RequestTag/owner': '{claims.org.owner}' } },
      },
    ],
  })
  const filled = (claims: object) => choose({ sessionPolicy: { template } }, { org: { owner: 'eve' }, ...claims })

  test('by template has the claims in its texts', () => {
    const policy = filled({ team: 'search' }).attributes?.policy ?? ''
    expect(policy).toBe(template.replace('{claims.team}', 'search').replace('{claims.org.owner}', 'eve'))
  })

  test.each([
    '","Effect":"Deny',
    '"}],"x":[{"',
    String.raw`\"`,
    '{"a":1}',
    "'",
    '{claims.sub}',
    '</script>',
    'a/b',
    'ä',
    '\u65e5\u672c',
    '\u{1f600}',
    'caf\u00e9\u2026',
  ])('a claim that holds %j stays within its text', (value) => {
    const policy = JSON.parse(filled({ team: value }).attributes?.policy ?? '') as { Statement: { Resource: string }[] }
    expect(filled({ team: value }).attributes?.policy).toMatch(/^[\x20-\x7e]+$/)
    expect(policy.Statement).toHaveLength(1)
    expect(policy.Statement[0]).toMatchObject({
      Effect: 'Allow',
      Action: 's3:GetObject',
      Resource: `arn:aws:s3:::data/${value}/*`,
    })
  })

  test.each([
    '*',
    'a*',
    '?',
    '${aws:username}',
    '$',
    '',
    'a\nb',
    'a\u0000b',
    'x'.repeat(257),
    'x'.repeat(10_240),
    7,
    null,
    ['a'],
    { a: 1 },
  ])('a claim that would be more than its text, %j, refuses', (value) => {
    expect(filled({ team: value })).toMatchObject({ roleArn: undefined, refusal: 'role_denied' })
  })

  test('a claim that is missing refuses, and so does what becomes too long', () => {
    expect(filled({})).toMatchObject({
      refusal: 'role_denied',
      reason: 'the session policy: the claim "team" is missing',
    })
    const long = JSON.stringify({ Statement: Array.from({ length: 9 }, () => ({ Resource: '{claims.team}' })) })
    expect(choose({ sessionPolicy: { template: long } }, { team: 'x'.repeat(250) })).toMatchObject({
      refusal: 'role_denied',
      reason: 'the session policy has more than 2048 characters',
    })
  })

  test('by template of the config is that of all roles without one of their own, the fallback too', () => {
    const config = { sessionPolicyTemplate: template, fallbackRoleArn: 'arn:aws:iam::123456789012:role/rest' }
    const claims = { team: 'search', org: { owner: 'eve' } }
    const policy = filled(claims).attributes?.policy
    expect(choose({}, claims, config).attributes).toMatchObject({ policy, writtenPolicy: template })
    expect(choose({ sessionPolicy: { document: { Statement: [] } } }, claims, config).attributes?.policy).toBe(
      '{"Statement":[]}',
    )
    const mapper = createRoleMapper({ roleClaim: 'groups', ...config })
    expect(mapper.choose(claimsOf(claims))).toMatchObject({ by: 'fallback', attributes: { policy } })
  })

  test.each([
    [{ sessionPolicy: '{"Statement":[{"Resource":"\u65e5"}]}' }, {}],
    [{}, { sessionPolicy: { document: { Statement: [{ Resource: '\u65e5' }] } } }],
  ])('that is constant is ASCII: %j %j', (config, mapping) => {
    const expected = String.raw`{"Statement":[{"Resource":"\u65e5"}]}`
    expect(choose(mapping, {}, config).attributes?.policy).toBe(expected)
  })

  test('of a mapping is in place of that of the config, with its ARNs', () => {
    const config = { sessionPolicy: '{"Statement":[]}', policyArns: ['arn:aws:iam::aws:policy/A'] }
    expect(choose({}, {}, config).attributes).toMatchObject({
      policy: '{"Statement":[]}',
      policyArns: config.policyArns,
    })
    const own = { sessionPolicy: { document: { Statement: [1] } }, policyArns: ['arn:aws:iam::aws:policy/B'] }
    expect(choose(own, {}, config).attributes).toMatchObject({
      policy: '{"Statement":[1]}',
      policyArns: own.policyArns,
    })
  })
})
