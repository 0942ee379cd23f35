import { array, assert, asyncProperty, constantFrom, string } from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RegistryServer } from '../../../src/registry/index.ts'
import { SearchIndex } from '../../../src/registry/listing/search-index.ts'
import { get, idsOf, listOf, SERVERS, start } from '../../support/registry/setup.ts'

const server = (name: string, description: string, title?: string) => ({
  name,
  version: '1',
  description,
  ...(title === undefined ? {} : { title }),
})

describe('search', () => {
  let registry: RegistryServer
  beforeAll(async () => {
    registry = await start([
      server('com.example/weather', 'Forecasts and current conditions', 'Weather Łódź'),
      server('com.example/maps', 'Finds the way, whatever the WEATHER'),
      server('com.example/mail', 'Reads and writes mail', 'Post 北京'),
      ...Array.from({ length: 40 }, (_, index) => server(`org.many/s${10 + index}`, `One of many, ${index % 2}`)),
    ])
  })
  afterAll(() => registry.drain(0))
  const found = async (query: string) => idsOf(await get(registry, `${SERVERS}?${query}`)).map((id) => id.split(' ')[0])

  it.each([
    ['weather', ['com.example/maps', 'com.example/weather']],
    ['WEATHER%20%C5%82%C3%B3d', ['com.example/weather']],
    ['%E5%8C%97', ['com.example/mail']],
    ['%E5%8C%97%E4%BA%AC', ['com.example/mail']],
    ['reads%20and', ['com.example/mail']],
    ['com.example/m', ['com.example/mail', 'com.example/maps']],
    ['mail%20reads', []],
    ['mailx', []],
    ['weatherfore', []],
    ['%F0%9F%98%80', []],
  ])('for %s looks at names, titles and descriptions', async (text, expected) => {
    expect(await found(`search=${text}`)).toEqual(expected)
  })

  it('pages through what it finds, in the order of the list', async () => {
    const first = listOf(await get(registry, `${SERVERS}?search=many,%201&limit=15`))
    const second = listOf(
      await get(registry, `${SERVERS}?search=many,%201&limit=15&cursor=${first.metadata.nextCursor ?? ''}`),
    )
    const names = [...first.servers, ...second.servers].map((one) => one.server.name)
    expect(names).toEqual(Array.from({ length: 20 }, (_, index) => `org.many/s${11 + 2 * index}`))
    expect(second.metadata).toEqual({ count: 5 })
  })

  it('with nothing to look for is the list', async () => {
    expect(await found('search=&limit=2')).toEqual(['com.example/mail', 'com.example/maps'])
  })
})

describe('the index', () => {
  it('leaves out no text that has what is looked for, and gives each once and in order', async () => {
    const letters = string({ unit: constantFrom('a', 'b', 'ż', '-', '\0', '😀'), maxLength: 12 })
    await assert(
      asyncProperty(array(letters, { maxLength: 30 }), letters.filter(Boolean), async (texts, wanted) => {
        const candidates = [...(await SearchIndex.of(texts)).candidates(wanted)]
        expect(candidates).toEqual([...new Set(candidates)].toSorted((a, b) => a - b))
        const holding = texts.flatMap((text, index) => (text.includes(wanted) ? [index] : []))
        expect(candidates.filter((index) => texts[index]?.includes(wanted))).toEqual(holding)
      }),
      { seed: 7, numRuns: 200 },
    )
  })

  it('gives few of many texts for a word that few have', async () => {
    const texts = Array.from({ length: 2000 }, (_, index) => `a server that does things, number ${index}`)
    const index = await SearchIndex.of([...texts, 'a needle that does things'])
    expect(index.candidates('needle')).toHaveLength(1)
    expect(index.candidates('needles')).toHaveLength(0)
  })
})
