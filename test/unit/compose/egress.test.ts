import { describe, expect, it } from 'vitest'
import { describeEgress, egressFrom } from '../../../src/compose/egress.ts'

describe('the egress proxy of the environment', () => {
  it.each([
    [{}, undefined],
    [{ HTTPS_PROXY: '' }, undefined],
    [{ HTTPS_PROXY: 'http://proxy:3128' }, { httpsProxy: 'http://proxy:3128' }],
    [
      { https_proxy: 'proxy:3128', no_proxy: '.local' },
      { httpsProxy: 'proxy:3128', noProxy: '.local' },
    ],
    [{ HTTP_PROXY: 'https://me:a%20b@[::1]:1' }, { httpProxy: 'https://me:a%20b@[::1]:1' }],
    [{ HTTPS_PROXY: 'http://first', https_proxy: 'http://second' }, { httpsProxy: 'http://first' }],
  ])('%j', (env, expected) => {
    expect(egressFrom(env)).toEqual(expected)
  })

  it.each([
    ['HTTPS_PROXY', 'not a url'],
    ['https_proxy', 'ftp://proxy'],
    ['HTTP_PROXY', 'http://'],
    ['http_proxy', 'http://me:100%@proxy'],
    ['HTTP_PROXY', 'http://proxy:99999'],
  ])('%s=%s is reported by its name, without its value', (name, value) => {
    expect(() => egressFrom({ [name]: value })).toThrow(
      expect.objectContaining({
        code: 'config_error',
        detail: `${name} is not a proxy URL, expected http://HOST:PORT`,
      }),
    )
  })

  it('is shown without what may be a password', () => {
    expect(describeEgress({ httpsProxy: 'http://me:my-password@proxy:3128' })).toEqual({ httpsProxy: 'proxy:3128' })
  })
})
