import { expect, it } from 'vitest'
import { brokenRule } from '../../../src/authenticate/claim-rules.ts'

const rules = {
  issuer: 'https://idp',
  audience: 'us',
  tolerance: { expiredSeconds: 0, earlySeconds: 0 },
  audienceClaim: 'aud',
  requireAudience: true,
}
const claims = { iss: 'https://idp', aud: 'us', exp: 100 }

it.each([true, false])('an issuer that is named is this one, introspected: %s', (isIntrospected) => {
  expect(brokenRule(claims, { ...rules, isIntrospected }, 0)).toBeUndefined()
  expect(brokenRule({ ...claims, iss: 'https://other' }, { ...rules, isIntrospected }, 0)).toMatch(/^iss/)
})
