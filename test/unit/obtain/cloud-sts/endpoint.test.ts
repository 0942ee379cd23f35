import { STSClient } from '@aws-sdk/client-sts'
import { describe, expect, test } from 'vitest'
import { stsEndpoint, stsEndpointOf } from '../../../../src/obtain/cloud-sts/endpoint.ts'

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

describe('the variables of the AWS SDKs', () => {
  const spec = { region: 'eu-central-1' }
  test.each([
    [spec, { fips: true }, 'https://sts-fips.eu-central-1.amazonaws.com'],
    [spec, { dualStack: true }, 'https://sts.eu-central-1.api.aws'],
    [spec, { fips: true, dualStack: true }, 'https://sts-fips.eu-central-1.api.aws'],
    [{ ...spec, fips: false }, { fips: true }, 'https://sts.eu-central-1.amazonaws.com'],
    [spec, { fips: false, dualStack: false }, 'https://sts.eu-central-1.amazonaws.com'],
  ])('%j with %j is %s', (config, settings, endpoint) => {
    expect(stsEndpointOf(config, settings)).toEqual({ endpoint, isNamed: false })
  })

  test.each([
    [
      spec,
      { fips: true, ambientEndpoint: 'https://sts.example' },
      /^AWS_USE_FIPS_ENDPOINT select.*AWS_ENDPOINT_URL_STS/,
    ],
    [
      { ...spec, stsEndpoint: 'https://sts.example' },
      { dualStack: true },
      /^AWS_USE_DUALSTACK_ENDPOINT .*\(stsEndpoint\)/,
    ],
    [{ ...spec, fips: true }, { endpoint: 'https://sts.example' }, /^fips .*\(--sts-endpoint\)/],
  ])('%j with %j is refused: no endpoint could honor it', (config, settings, detail) => {
    expect(() => stsEndpointOf(config, settings)).toThrow(
      expect.objectContaining({ code: 'config_error', detail: expect.stringMatching(detail) as unknown }),
    )
  })
})
