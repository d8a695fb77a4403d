// The settings of VitePress for `bin/docs site`, which writes pages.json: the sidebar, and the API's classes.
import { readFileSync } from "node:fs"
import { defineConfig } from "vitepress"

const { version, guides, reference, project, api, repository } = JSON.parse(
  readFileSync(new URL("./pages.json", import.meta.url))
)

export default defineConfig({
  title: "Heddle",
  description: "A Rack server on its own fiber runtime: one request seldom delays another.",
  base: process.env.HEDDLE_SITE_BASE || "/",
  cleanUrls: false,
  lastUpdated: false,
  // Pages are written for a repository too, where a program's placeholder such as <name> is text.
  ignoreDeadLinks: "localhostLinks",
  markdown: { html: false, theme: { light: "github-light", dark: "github-dark" } },
  vite: { build: { chunkSizeWarningLimit: 4000 } },
  themeConfig: {
    outline: [2, 3],
    search: { provider: "local" },
    nav: [
      { text: "Guides", link: "/README" },
      { text: "Options", link: "/docs/options" },
      { text: "API", link: "/api/Heddle" },
      { text: version, items: [
        { text: "Changelog", link: "/CHANGELOG" },
        { text: "Versions and support", link: "/docs/stability" },
      ] },
    ],
    sidebar: [
      { text: "Guides", items: guides },
      { text: "Reference", items: reference },
      { text: "Project", items: project, collapsed: true },
      { text: "API", items: api, collapsed: true },
    ],
    ...(repository ? { socialLinks: [{ icon: "github", link: repository }] } : {}),
    footer: { message: "MIT License" },
  },
})
