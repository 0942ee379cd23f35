import { expect, it } from 'vitest'
import { extauth } from '../e2e/process.ts'

it('extauth help CMD is extauth CMD --help, also of commands of a command', async () => {
  for (const command of [['proxy'], ['lab', 'token']]) {
    const [asked, plain] = [extauth(['help', ...command]), extauth([...command, '--help'])]
    expect([await asked.ended, await plain.ended]).toEqual([0, 0])
    expect(asked.stdout()).toBe(plain.stdout())
    expect(asked.stdout()).toContain(`Usage: extauth ${command.join(' ')}`)
  }
}, 30_000)

it('extauth init bearer says which type is meant', async () => {
  const running = extauth(['init', 'bearer'])
  expect(await running.ended).toBe(2)
  expect(running.stderr()).toContain('Did you mean bearerToken?')
}, 30_000)
