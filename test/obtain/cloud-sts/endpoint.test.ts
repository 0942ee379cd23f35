import { STSClient } from '@aws-sdk/client-sts'
import { describe, expect, test } from 'vitest'
import { stsEndpoint } from '../../../src/obtain/cloud-sts/endpoint.ts'

const REGIONS =
  'us-east-1 eu-central-1 us-west-2 cn-north-1 us-gov-west-1 us-gov-east-1 us-iso-east-1 us-isob-east-1 eu-isoe-west-1 us-isof-south-1 eusc-de-east-1'
const rows = REGIONS.split(' ').flatMap((region) =>
  [false, true].flatMap((fips) => [false, true].map((dualStack) => ({ region, fips, dualStack }))),
)

describe('the endpoint of STS is that of the AWS SDK, in every partition', () => {
  test.each(rows)('$region, fips $fips, dualStack $dualStack', ({ region, fips, dualStack }) => {
    const parameters = { Region: region, UseFIPS: fips, UseDualStack: dualStack, UseGlobalEndpoint: false }
    const theirs = new STSClient({ region }).config.endpointProvider(parameters).url.href
    expect(stsEndpoint({ region, fips, dualStack })).toBe(theirs.replace(/\/$/, ''))
  })
})
