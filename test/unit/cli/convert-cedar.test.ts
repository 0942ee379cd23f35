import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { main } from '../../../src/cli/commands/index.ts'
import { authorization } from '../../../src/resources/authorization.ts'

async function convert(text: string) {
  let [out, err] = ['', '']
  const code = await main(['convert', 'cedar', '-'], {
    stdout: (part) => void (out += part),
    stderr: (part) => void (err += part),
    env: {},
    stdin: () => Promise.resolve(text),
    stop: new Promise(() => {}),
    onReload: () => undefined,
  })
  return { code, out, err }
}

it('prints rules that a route accepts', async () => {
  const { code, out, err } = await convert(
    'permit(principal, action == Action::"call_tool", resource == Tool::"search") when { principal.claim_groups.contains("staff") };\npermit(principal, action == Action::"list_tools", resource);',
  )
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(out).toMatch(/^# policy-2 matches no request/)
  const { authorization: printed } = parse(out) as { authorization: { rules: { name: string }[] } }
  expect(
    authorization()
      .parse(printed)
      .rules.map(({ name }) => name),
  ).toEqual(['no-subject', 'policy-1-unusable-claim', 'policy-1', 'notifications'])
})

it('prints nothing but the location and the reason for what it cannot convert', async () => {
  const { code, out, err } = await convert('permit(principal, action, resource)\nunless { true };')
  expect({ code, out }).toEqual({ code: 1, out: '' })
  expect(err).toMatch(/:2:1 {2}"unless" is not converted/)
})

const POLICY = 'permit(principal, action == Action::"call_tool", resource == Tool::"search");'
const cedar = { policies: [POLICY], entities_json: '[]' }
const manifest = (kind: string, spec: object) =>
  JSON.stringify({ apiVersion: 'toolhive.stacklok.dev/v1beta1', kind, metadata: { name: 'one' }, spec })
const map = (text: string) =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one' }, data: { 'authz.json': text } })
const file = JSON.stringify({ version: '1.0', type: 'cedarv1', cedar })

it.each([
  ['an authz.json', file, []],
  ['its YAML form', `version: "1.0"\ntype: cedarv1\ncedar:\n  policies:\n    - '${POLICY}'\n`, []],
  [
    'a manifest',
    manifest('MCPRemoteProxy', { authzConfig: { type: 'inline', inline: cedar } }),
    ['# MCPRemoteProxy/one  spec.authzConfig'],
  ],
  [
    'a virtual server',
    manifest('VirtualMCPServer', {
      incomingAuth: { authzConfig: { type: 'inline', inline: cedar } },
      config: { incomingAuth: { authz: { type: 'cedar', ...cedar } } },
    }),
    ['# VirtualMCPServer/one  spec.incomingAuth.authzConfig', '# VirtualMCPServer/one  spec.config.incomingAuth.authz'],
  ],
  ['an MCPAuthzConfig', manifest('MCPAuthzConfig', { type: 'cedarv1', config: cedar }), ['# MCPAuthzConfig/one  spec']],
  ['a ConfigMap', map(file), ['# ConfigMap/one  data.authz.json']],
  [
    'a List',
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [JSON.parse(map(file))] }),
    ['# ConfigMap/one  data.authz.json'],
  ],
])('prints the rules for the policies in %s', async (_what, text, heads) => {
  const { code, out, err } = await convert(text)
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(out.split('\n').filter((line) => line.startsWith('#'))).toEqual(heads)
  const printed = out.split('---\n').map((one) => parse(one) as unknown)
  expect(printed).toHaveLength(heads.length || 1)
  for (const one of printed)
    expect(one).toMatchObject({
      authorization: { default: 'deny', rules: [{ name: 'no-subject' }, { tools: ['search'], effect: 'allow' }, {}] },
    })
})

it.each([
  [
    'a policy',
    manifest('MCPRemoteProxy', { authzConfig: { type: 'inline', inline: { policies: [POLICY, 'deny'] } } }),
    'MCPRemoteProxy/one  spec.authzConfig.inline.policies[1]  line 1, column 1 of the policy: found "deny"',
  ],
  [
    'entities',
    manifest('MCPRemoteProxy', { authzConfig: { type: 'inline', inline: { ...cedar, entitiesJson: '[{}]' } } }),
    'MCPRemoteProxy/one  spec.authzConfig  cannot be converted: entities',
  ],
  [
    'another token',
    manifest('MCPAuthzConfig', { type: 'cedarv1', config: { ...cedar, primary_upstream_provider: 'idp' } }),
    'MCPAuthzConfig/one  spec  cannot be converted: the primary upstream provider',
  ],
  ['another service', JSON.stringify({ type: 'httpv1', http: {} }), 'type "httpv1" asks another service'],
  ['no string', JSON.stringify({ type: 'cedarv1', cedar: { policies: [1] } }), 'a policy is not a string'],
  ['a manifest without policies', manifest('MCPRemoteProxy', {}), 'no Cedar policies in these documents; expected'],
])('prints nothing but the reason for %s that cannot be converted', async (_what, text, reason) => {
  const { code, out, err } = await convert(text)
  expect({ code, out }).toEqual({ code: 1, out: '' })
  expect(err).toContain(reason)
})
