import { expect, test } from 'vitest'
import { bundledIn, releaseBom } from '../../../scripts/sbom.ts'

const component = (name: string, version = '1.0.0') => ({ 'bom-ref': `${name}@${version}`, name, version })

test('the bill of materials has what is installed and what is bundled, and nothing of development', () => {
  const bom = {
    metadata: { component: { name: 'own' } },
    components: [
      component('installed'),
      component('shared'),
      component('bundled', '2.0.0'),
      component('bundled', '1.0.0'),
      component('tool'),
    ],
    dependencies: [
      { ref: 'own@0.2.0', dependsOn: ['installed@1.0.0', 'bundled@2.0.0', 'tool@1.0.0'] },
      { ref: 'installed@1.0.0', dependsOn: ['shared@1.0.0'] },
      { ref: 'tool@1.0.0', dependsOn: ['shared@1.0.0', 'bundled@1.0.0'] },
    ],
  }
  const packages = {
    '': { version: '0.2.0' },
    'node_modules/installed': { version: '1.0.0' },
    'node_modules/shared': { version: '1.0.0' },
    'node_modules/bundled': { version: '2.0.0', dev: true },
    'node_modules/tool': { version: '1.0.0', dev: true },
    'node_modules/tool/node_modules/bundled': { version: '1.0.0', dev: true },
  }
  const bundled = bundledIn('dist/ holds parts of these packages.\n\nbundled 2.0.0 (MIT)\n\nThe license\n')
  const { components, dependencies } = releaseBom(bom, { packages }, bundled)
  expect(components.map((one) => one['bom-ref'])).toEqual(['installed@1.0.0', 'shared@1.0.0', 'bundled@2.0.0'])
  expect(dependencies).toEqual([
    { ref: 'own@0.2.0', dependsOn: ['installed@1.0.0', 'bundled@2.0.0'] },
    { ref: 'installed@1.0.0', dependsOn: ['shared@1.0.0'] },
  ])
  expect(() => releaseBom({ ...bom, components: [] }, { packages }, bundled)).toThrow('3 packages')
})

test('names of bundled packages are read from the licenses', () => {
  expect([
    ...bundledIn('zod 4.6.7 (MIT)\n\n(c) 2020\n----\n\n@scope/a 1.0.0-beta.1 (Apache-2.0)\n\ntext 1 (x) y'),
  ]).toEqual(['zod', '@scope/a'])
})
