# frozen_string_literal: true

# Gemstash as its command starts it, with a folder of the benchmark's own: forty private gems, which are made here.
# Both servers load this file.

require "gemstash"
require "rack"
require "fileutils"
require "rubygems/package"
require "tmpdir"

base = File.join(Dir.tmpdir, "heddle-apps-gemstash").tap { |path| FileUtils.mkdir_p(path) }
Gemstash::Env.current = Gemstash::Env.new(Gemstash::Configuration.new(config: { base_path: base }))
storage = Gemstash::Storage.for("private").for("gems")
unless storage.resource("sample39-1.0.0").exist?
  Gemstash::Authorization.authorize("key", "all")
  Dir.mktmpdir do |folder|
    Dir.chdir(folder) do
      File.write("sample.rb", "SAMPLE = 1\n" * 500)
      40.times do |number|
        spec = Gem::Specification.new("sample#{number}", "1.0.0") do |gem|
          gem.summary = "a sample"
          gem.authors = ["nobody"]
          gem.files = ["sample.rb"]
          gem.add_dependency("rack", ">= 2") if number.odd?
        end
        path = Gem::Package.build(spec, true)
        Gemstash::GemPusher.new(Gemstash::ApiKeyAuthorization.new("key"), File.binread(path)).serve
      end
    end
  end
end
folder = File.dirname(Gem.loaded_specs.fetch("gemstash").full_gem_path.then { |path| "#{path}/." })
run Rack::Builder.parse_file(File.join(folder, "lib/gemstash/config.ru"))
