import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { main } from '../../../../src/cli/commands/index.ts'
import { authorization } from '../../../../src/resources/authorization.ts'

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
