# frozen_string_literal: true

require "bundler"
require "fileutils"
require "json"
require "open3"
require "rubygems"

module Heddle
  # The documentation as one site with a search: the pages of the repository and the API reference that YARD makes of
  # the comments, by VitePress. What these need is installed below vendor/.
  class Site
    ROOT = File.expand_path("../..", __dir__)
    SETTINGS = File.join(ROOT, "docs/site")
    TOOLS = File.join(ROOT, "vendor/site")
    # The version of Bundler is this Ruby's, or Bundler would fetch the one that wrote the lock file. That file stays.
    BUNDLE = { "BUNDLE_PATH" => File.join(ROOT, "vendor/bundle"), "BUNDLE_FROZEN" => "true",
               "BUNDLER_VERSION" => Bundler::VERSION }.freeze
    # Pages outside of docs/, and what the sidebar calls them.
    PROJECT = {
      "CHANGELOG.md" => "Changelog", "CONTRIBUTING.md" => "Contributing", "SECURITY.md" => "Security policy",
      "GOVERNANCE.md" => "Governance", "CODE_OF_CONDUCT.md" => "Code of conduct"
    }.freeze
    # Pages of docs/ that one looks things up in; the others are guides.
    REFERENCE = %w[options events gems from_puma platforms stability reliability security complaints questions
                   dependencies].freeze
    INTERNAL = %w[design releasing].freeze
    LINK = /(!?\[(?:[^\]\[]|\[[^\]]*\])*\])\(([^)\s]+)\)/

    class Failed < StandardError; end

    # @param folder [String] that gets the site
    def initialize(folder, output: $stdout)
      @folder = File.expand_path(folder)
      @output = output
      @source = File.join(ROOT, "tmp/site")
    end

    # @raise [Failed] a tool is missing, or failed: a page links to one that does not exist
    def build
      install_tools
      FileUtils.rm_rf(@source)
      FileUtils.mkdir_p(File.join(@source, ".vitepress"))
      pages.each { |page| write(page, linked(page, File.read(File.join(ROOT, page)))) }
      api = write_api
      write("index.md", linked("docs/site/index.md", File.read(File.join(SETTINGS, "index.md"))))
      copy_settings(api)
      vitepress
      @output.puts "#{@folder}: #{pages.size} pages, #{api.size} classes and modules"
    end

    # @return [Array<String>] Markdown files of the repository, relative to it
    def pages
      @pages ||= Dir.glob(["README.md", *PROJECT.keys, "docs/**/*.md", "examples/**/*.md"], base: ROOT)
                    .reject { |page| page.start_with?("docs/site/") }
    end

    # Links to what is not a page lead to the repository, or nowhere where its address is not known yet.
    # @param page [String] relative to the repository
    def linked(page, text)
      text = text.gsub(%r{<picture>.*?<img src="([^"]+)".*?alt="([^"]*)".*?</picture>}m, '![\2](\1)')
      outside_code(text) { |part| part.gsub(LINK) { link(page, Regexp.last_match(1), Regexp.last_match(2)) } }
    end

    private

    def link(page, name, target)
      return "#{name}(#{target})" if target.match?(/\A(?:[a-z]+:|#)/)

      path, anchor = target.split("#", 2)
      file = File.expand_path(path, File.join("/", File.dirname(page))).delete_prefix("/")
      file = "#{file}/README.md" if pages.include?("#{file}/README.md")
      return "#{name}(/#{file}#{"##{anchor}" if anchor})" if pages.include?(file)
      return "#{name}(#{target})" if name.start_with?("!")

      source ? "#{name}(#{source}/blob/v#{specification.version}/#{file})" : name.delete_prefix("[").delete_suffix("]")
    end

    # Fenced blocks stay as they are.
    def outside_code(text)
      text.split(/^(\s*```.*?^\s*```$)/m).map.with_index { |part, index| index.odd? ? part : yield(part) }.join
    end

    def write(page, text)
      path = File.join(@source, page)
      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, text)
    end

    # @return [Hash{String => String}] title => page
    def write_api
      listed = File.readlines(File.join(SETTINGS, "api_files.txt"), chomp: true)
      run({ "BUNDLE_GEMFILE" => File.join(SETTINGS, "Gemfile") }, RbConfig.ruby, "-S", "bundle", "exec", "yard", "doc",
          "--no-save", "--no-cache", "--quiet", "--plugin", "markdown", "--format", "markdown", "--no-private",
          "--hide-api", "private", "--output-dir", File.join(@source, "api"), *listed.map { |file| "lib/#{file}" })
      keep_classes
    end

    # YARD copies the pages that are there already.
    def keep_classes
      folder = File.join(@source, "api")
      Dir.children(folder).each do |name|
        FileUtils.rm_rf(File.join(folder, name)) unless name.start_with?("Heddle")
      end
      Dir.glob("**/*.md", base: folder).sort.to_h do |page|
        write("api/#{page}", without_html(File.read(File.join(folder, page))))
        [page.delete_suffix(".md").gsub("/", "::"), "/api/#{page}"]
      end
    end

    # Tags would be text on these pages. {#name} and {Name} are YARD's links.
    def without_html(text)
      outside_code(text) do |part|
        part.gsub(%r{^(#+ .*?) *<a id="(.*?)"></a>.*$}, '\1 {#\2}').gsub(%r{</?code>}, "`")
            .gsub(/(?<=[\s(])\{#?([A-Z]?[\w:.#?!]+)\}/, '`\1`')
      end
    end

    def copy_settings(api)
      FileUtils.cp(File.join(SETTINGS, "config.mjs"), File.join(@source, ".vitepress"))
      FileUtils.cp_r(File.join(ROOT, "docs/images"), File.join(@source, "docs")) # beside the pages that show them
      Dir.glob("docs/**/*.svg", base: ROOT).each do |image|
        FileUtils.cp(File.join(ROOT, image), File.join(@source, image))
      end
      FileUtils.ln_sf(File.join(TOOLS, "node_modules"), @source)
      write(".vitepress/pages.json",
            JSON.generate(version: specification.version.to_s, repository: source, **sections, api: items(api)))
    end

    def sections
      docs = pages.grep(%r{\Adocs/[^/]+\.md\z}).to_h { |page| [title(page), "/#{page}"] }
      named = ->(names) { docs.select { |_, page| names.include?(File.basename(page, ".md")) } }
      guides = docs.reject { |_, page| [*REFERENCE, *INTERNAL].include?(File.basename(page, ".md")) }
      benchmarks = pages.grep(%r{\Adocs/benchmarks/}).to_h { |page| ["Benchmarks: #{title(page)}", "/#{page}"] }
      { guides: items({ "Introduction" => "/README.md" }.merge(guides)),
        reference: items(named.call(REFERENCE).merge(benchmarks)),
        project: items(PROJECT.to_h { |page, title| [title, "/#{page}"] }.merge(named.call(INTERNAL))) }
    end

    def items(pages) = pages.map { |text, page| { text:, link: page.delete_suffix(".md") } }

    def title(page) = File.read(File.join(ROOT, page))[/^# (.*)/, 1].strip

    def specification = @specification ||= Gem::Specification.load(File.join(ROOT, "heddle.gemspec"))

    def source = specification.metadata["source_code_uri"]

    def install_tools
      FileUtils.mkdir_p(TOOLS)
      %w[package.json package-lock.json].each { |name| FileUtils.cp(File.join(SETTINGS, name), TOOLS) }
      run({}, "npm", "ci", "--prefix", TOOLS, "--ignore-scripts", "--no-audit", "--no-fund") unless installed?
      run({ "BUNDLE_GEMFILE" => File.join(SETTINGS, "Gemfile") }, RbConfig.ruby, "-S", "bundle", "install", "--quiet")
    end

    def installed? = File.exist?(File.join(TOOLS, "node_modules/vitepress/package.json"))

    def vitepress
      run({}, "node", File.join(TOOLS, "node_modules/vitepress/bin/vitepress.js"), "build", @source,
          "--outDir", @folder)
    end

    def run(environment, *command)
      said, status = Open3.capture2e(BUNDLE.merge(environment), *command, chdir: ROOT)
      raise Failed, "#{command.first(4).join(" ")} failed:\n#{said}" unless status.success?
    rescue Errno::ENOENT
      raise Failed, "bin/docs site needs #{command.first}, which is not installed"
    end
  end
end
