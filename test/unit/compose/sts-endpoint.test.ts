import { expect, test } from 'vitest'
import { stsEndpoints } from '../../../src/compose/sts-endpoint.ts'

test.each([
  [undefined, {}, {}],
  [undefined, { AWS_ENDPOINT_URL_STS: '' }, {}],
  [undefined, { AWS_ENDPOINT_URL_STS: 'https://sts.example' }, { ambientEndpoint: 'https://sts.example' }],
  ['http://127.0.0.1:8084', {}, { endpoint: 'http://127.0.0.1:8084' }],
  [
    'https://vpce.example/base',
    { AWS_ENDPOINT_URL_STS: 'https://sts.example' },
    { endpoint: 'https://vpce.example/base', ambientEndpoint: 'https://sts.example' },
  ],
  [undefined, { AWS_USE_FIPS_ENDPOINT: 'true', AWS_USE_DUALSTACK_ENDPOINT: 'false' }, { fips: true, dualStack: false }],
])('option %s and environment %j give %j', (option, env, sts) => {
  expect(stsEndpoints(option, env)).toEqual({ sts })
})

test.each([
  ['sts.example', {}, '--sts-endpoint'],
  ['ftp://sts.example', {}, '--sts-endpoint'],
  ['https://user:secret@sts.example', {}, '--sts-endpoint'],
  [undefined, { AWS_ENDPOINT_URL_STS: 'nonsense' }, 'AWS_ENDPOINT_URL_STS'],
])('option %s and environment %j are refused at start', (option, env, source) => {
  const detail = `${source} is not an http(s) URL without credentials`
  expect(() => stsEndpoints(option, env)).toThrow(expect.objectContaining({ code: 'config_error', detail }))
})

test.each(['AWS_USE_FIPS_ENDPOINT', 'AWS_USE_DUALSTACK_ENDPOINT'])('%s is true or false', (variable) => {
  const detail = `${variable} is "yes", expected "true" or "false"`
  expect(() => stsEndpoints(undefined, { [variable]: 'yes' })).toThrow(
    expect.objectContaining({ code: 'config_error', detail }),
  )
})
