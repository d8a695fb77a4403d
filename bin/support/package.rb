# frozen_string_literal: true

require "digest"
require "fileutils"
require "json"
require "open3"
require "rubygems/package"
require "tmpdir"
require "yaml"
require_relative "amalgamation"
require_relative "arm64"

# Builds the gems that are released: see bin/package. The same commit gives the same bytes, with the same compiler.
class Package
  class Error < StandardError; end

  # The first RubyGems that tells glibc from musl. Those of Debian 12 and 13 are older, whatever their Ruby.
  LEAST_RUBYGEMS = Gem::Version.new("3.3.22")

  # A Ruby for which the extension is compiled.
  Interpreter = Data.define(:version, :path, :rubygems) do
    # @param file [String] what `bin/setup --rubies-to` wrote
    # @return [Array<Interpreter>]
    def self.list(file)
      File.readlines(file, chomp: true).map do |line|
        _, _, version, _, path = line.split("\t")
        new(version:, path:, rubygems: Gem::Version.new(IO.popen([path, "-e", "print Gem::VERSION"], &:read)))
      end
    end

    # @return [String] the folder of its extension in the gem, such as "3.4"
    def series = version[/\A\d+\.\d+/]

    # @return [Boolean] whether its RubyGems takes the precompiled gem
    def precompiled? = rubygems >= LEAST_RUBYGEMS
  end

  ROOT = File.expand_path("../..", __dir__)
  PLATFORM = "x86_64-linux-gnu"
  # Of Debian 12, Ubuntu 22.04 and RHEL 9, or older. RubyGems can't compare versions of glibc.
  NEWEST_GLIBC = Gem::Version.new("2.34")
  LIBRARIES = %w[libc.so.6 libm.so.6 libz.so.1 libpthread.so.0 ld-linux-x86-64.so.2 ld-linux-aarch64.so.1].freeze

  # @param folder [String] where the gems are written
  # @param rubies [Array<Interpreter>] those of the precompiled gem; without one there is none
  # @param arm64 [Arm64, nil] with it there is a precompiled gem for ARM64, too
  def initialize(folder, rubies:, arm64: nil)
    @folder = folder
    @rubies = rubies.uniq(&:series).sort_by(&:series)
    @arm64 = arm64
  end

  # @param twice [Boolean] builds everything again and compares
  # @raise [Error] where a build fails, would not load elsewhere, or differs the second time
  def run(twice: false)
    sums = build
    raise Error, "two builds differ" if twice && sums != Dir.mktmpdir do |folder|
      Package.new(folder, rubies: @rubies, arm64: @arm64).build(clean: true)
    end

    sums.each { |name, sum| puts "#{sum}  #{name}" }
  end

  # @return [Hash{String => String}] SHA-256 sums by file name
  def build(clean: false)
    ENV["SOURCE_DATE_EPOCH"] ||= capture("git", "log", "-1", "--format=%ct").strip
    FileUtils.mkdir_p(@folder)
    FileUtils.rm_f(Dir.glob(File.join(@folder, "heddle-*")))
    build_source
    build_precompiled(clean) if @rubies.any?
    write_bill_of_materials
    sums = Dir.children(@folder).grep(/\Aheddle-/).sort.to_h do |name|
      [name, Digest::SHA256.file(File.join(@folder, name)).hexdigest]
    end
    File.write(File.join(@folder, "SHA256SUMS"), sums.map { |name, sum| "#{sum}  #{name}\n" }.join)
    sums
  end

  private

  # A copy: RubyGems keeps what it has loaded.
  def specification = (Gem::Specification.load(File.join(ROOT, "heddle.gemspec")) || raise(Error, "no gemspec")).dup

  # With the extension's sources joined into a few, each with its headers: they compile in half of the time.
  def build_source
    spec = specification
    sources = spec.files.grep(%r{\Aext/.*\.[ch]\z})
    Dir.mktmpdir do |stage|
      (spec.files -= sources).each { |path| copy(File.join(ROOT, path), File.join(stage, path)) }
      Amalgamation.new(File.join(ROOT, "ext/heddle")).files.each do |name, text|
        path = "ext/heddle/#{name}"
        File.write(File.join(stage, path), text)
        spec.files += [path]
      end
      write_gem(spec, stage)
    end
  end

  def build_precompiled(clean)
    if Gem.rubygems_version < LEAST_RUBYGEMS
      raise Error, "RubyGems #{LEAST_RUBYGEMS} or newer is needed, this is #{Gem::VERSION}: build a Ruby with " \
                   "`bin/setup --build-ruby` or name one with HEDDLE_RUBY; --source needs none"
    end
    check_gaps
    write_precompiled(PLATFORM, @rubies.to_h { |ruby| [ruby.series, compile(ruby, clean)] })
    return unless @arm64

    ruby = @rubies.find { |one| one.series == Arm64::SERIES } or raise Error, "ARM64 needs Ruby #{Arm64::SERIES}"
    write_precompiled(Arm64::PLATFORM, { ruby.series => compile(ruby, clean, @arm64.prepare.environment) })
  end

  # @param libraries [Hash{String => String}] paths by the series of Ruby
  def write_precompiled(platform, libraries)
    spec = specification
    spec.platform = platform
    spec.extensions = []
    spec.files = spec.files.reject { |path| path.start_with?("ext/") }
    spec.required_ruby_version = [">= #{libraries.keys.first}", "< #{Gem::Version.new("#{libraries.keys.last}.0").bump}.dev"]
    spec.required_rubygems_version = ">= #{LEAST_RUBYGEMS}"
    Dir.mktmpdir do |stage|
      spec.files.each { |path| copy(File.join(ROOT, path), File.join(stage, path)) }
      libraries.each do |series, library|
        path = "lib/heddle/#{series}/heddle.so"
        copy(library, File.join(stage, path))
        spec.files += [path]
      end
      write_gem(spec, stage)
    end
  end

  # The gem is for a range of versions, and each in it needs its extension.
  def check_gaps
    missing = %w[3.3 3.4 4.0].grep(@rubies.first.series..@rubies.last.series) - @rubies.map(&:series)
    raise Error, "Ruby #{missing.join(", ")} is missing between those found: install it" if missing.any?
  end

  def compile(ruby, clean, environment = {})
    key = capture(environment, ruby.path, "-rrbconfig", "-e",
                  'puts RbConfig::CONFIG.values_at("ruby_version", "arch").join("-")').strip
    capture(environment, ruby.path, "--disable=gems", "bin/compile", "--portable", "--werror", *("--clean" if clean))
    library = File.join(ROOT, "lib/heddle/native", "#{key}+portable", "heddle.so")
    check_library(library, environment.empty? ? "objdump" : "#{Arm64::PLATFORM}-objdump")
    library
  end

  def check_library(library, objdump = "objdump")
    needed = capture(objdump, "-p", library).scan(/NEEDED\s+(\S+)/).flatten
    foreign = needed - LIBRARIES
    raise Error, "#{library} needs #{foreign.join(", ")}, which not every machine has" if foreign.any?

    newest = capture(objdump, "-T", library).scan(/GLIBC_([\d.]+)/).flatten.map { |text| Gem::Version.new(text) }.max
    raise Error, "#{library} needs glibc #{newest}, at most #{NEWEST_GLIBC} is allowed" if newest > NEWEST_GLIBC
  end

  def write_gem(spec, folder)
    target = File.join(@folder, spec.file_name)
    Dir.chdir(folder) do
      Gem::DefaultUserInteraction.use_ui(Gem::SilentUI.new) { Gem::Package.build(spec, false, false, target) }
    end
  rescue Gem::InvalidSpecificationException => e
    raise Error, e.message
  end

  # https://cyclonedx.org/docs/1.5/json: what is shipped (one component, under one licence) and what it depends on.
  def write_bill_of_materials
    spec = specification
    component = { "type" => "library", "bom-ref" => "pkg:gem/heddle@#{spec.version}", "name" => "heddle",
                  "version" => spec.version.to_s, "purl" => "pkg:gem/heddle@#{spec.version}",
                  "licenses" => spec.licenses.map { |id| { "license" => { "id" => id } } } }
    needs = spec.runtime_dependencies.map do |one|
      { "type" => "library", "bom-ref" => "pkg:gem/#{one.name}", "name" => one.name, "purl" => "pkg:gem/#{one.name}",
        "scope" => "required", "description" => "#{one.requirement}; not shipped" }
    end
    bill = { "bomFormat" => "CycloneDX", "specVersion" => "1.5", "version" => 1,
             "metadata" => { "timestamp" => Time.at(Integer(ENV.fetch("SOURCE_DATE_EPOCH"))).utc.strftime("%FT%TZ"),
                             "component" => component },
             "components" => needs,
             "dependencies" => [{ "ref" => component["bom-ref"], "dependsOn" => needs.map { |one| one["bom-ref"] } }] }
    File.write(File.join(@folder, "heddle-#{spec.version}.cdx.json"), "#{JSON.pretty_generate(bill)}\n")
  end

  def copy(from, to)
    FileUtils.mkdir_p(File.dirname(to))
    FileUtils.cp(from, to, preserve: true)
  end

  def capture(*command)
    output, status = Open3.capture2e(*command, chdir: ROOT)
    status.success? ? output : raise(Error, "#{command.join(" ")} failed:\n#{output}")
  end
end
