import { expect, test } from 'vitest'
import { createCloudStsSource } from '../../../../src/obtain/cloud-sts/index.ts'
import { authOf, depsOf } from '../../../support/obtain/cloud-sts/support/deps.ts'

const ROLE = 'arn:aws:iam::123456789012:role/reader'

test.each([
  ['ca.pem', 'of ca.pem'],
  [undefined, undefined],
])('STS is verified with the certificates in caCertPath: %s', (caCertPath, expected) => {
  const seen: (string | undefined)[] = []
  const { deps } = depsOf('https://sts.example')
  const auth = authOf({ fallbackRoleArn: ROLE, ...(caCertPath === undefined ? {} : { caCertPath }) })
  createCloudStsSource(auth, {
    ...deps,
    caCertificate: (path) => () => Buffer.from(`of ${path}`),
    outbound: ({ caCert }) => {
      seen.push(caCert?.()?.toString())
      return { request: () => expect.fail('nothing is sent'), close: () => Promise.resolve() }
    },
  })
  expect(seen).toEqual([expected])
})
