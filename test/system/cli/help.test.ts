import { expect, it } from 'vitest'
import { extauth } from '../../support/e2e/process.ts'

it('extauth help CMD is extauth CMD --help, also of commands of a command', async () => {
  for (const command of [['proxy'], ['lab', 'token']]) {
    const [asked, plain] = [extauth(['help', ...command]), extauth([...command, '--help'])]
    expect([await asked.ended, await plain.ended]).toEqual([0, 0])
    expect(asked.stdout()).toBe(plain.stdout())
    expect(asked.stdout()).toContain(`Usage: extauth ${command.join(' ')}`)
  }
}, 30_000)

it('an unknown EXTAUTH_ variable is logged, one of another command is not', async () => {
  const environment = { EXTAUTH_LISTN: ':1', EXTAUTH_WEBHOOK_ADDRESS: 'off', EXTAUTH_ADMIN_PORT: '1' }
  const proxy = extauth(['proxy', '-c', 'nowhere.yaml', '--log-format', 'json'], { env: environment })
  expect(await proxy.ended).toBe(1)
  expect(proxy.stderr()).toMatch(/"level":40.*EXTAUTH_LISTN is not a known variable; did you mean EXTAUTH_LISTEN\?/)
  expect(proxy.stderr().match(/not a known variable/g)).toHaveLength(1)
  const validate = extauth(['validate', 'config/lab', '-q', '--no-files'], { env: environment })
  expect(await validate.ended).toBe(0)
  expect([validate.stdout(), validate.stderr()]).toEqual([
    '',
    'extauth validate: EXTAUTH_LISTN is not a known variable; did you mean EXTAUTH_LISTEN?\n',
  ])
}, 30_000)

it('-v and -q of a command with a log are its levels, and not both', async () => {
  const levels = async (...words: string[]) => {
    const running = extauth(['proxy', '-c', 'nowhere.yaml', ...words], { env: { EXTAUTH_LISTN: 'x' } })
    expect(await running.ended).toBe(words.length > 1 ? 2 : 1)
    return running.stderr()
  }
  expect(await levels('-v')).toContain('not a known variable')
  expect(await levels('-q')).not.toContain('not a known variable')
  expect(await levels('-v', '-q')).toContain('--verbose and --quiet exclude each other')
}, 30_000)

it('extauth init bearer says which type is meant', async () => {
  const running = extauth(['init', 'bearer'])
  expect(await running.ended).toBe(2)
  expect(running.stderr()).toContain('unknown type "bearer". Did you mean bearerToken? Expected one of ')
  expect(running.stderr()).toContain(', awsSts,')
}, 30_000)
