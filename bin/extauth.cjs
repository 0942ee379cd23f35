#!/usr/bin/env node
'use strict'
require('./require-node.cjs')
var fs = require('node:fs')
var path = require('node:path')
// A checkout runs the sources as they are; an installed package has only dist/ (Node strips no types below node_modules).
var source = path.join(__dirname, '..', 'src', 'main.ts')
var entry = fs.existsSync(source) ? source : path.join(__dirname, '..', 'dist', 'src', 'main.js')
import(require('node:url').pathToFileURL(entry).href)
