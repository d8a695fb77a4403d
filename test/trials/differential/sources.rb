# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"
require_relative "suite"

module Trials
  # Gets what a suite needs into a folder of the user's cache: its tests' sources, the gem of that version. Nothing of
  # it is committed.
  class Sources
    CACHE = File.join(ENV.fetch("XDG_CACHE_HOME", File.join(Dir.home, ".cache")), "heddle/trials")
    # Instead of what can be fetched: a folder with one checkout a suite, by the suite's name.
    CHECKOUTS = ENV.fetch("HEDDLE_TRIAL_SOURCES", nil)
    GLIBC_ONLY = File.join(Suite::ROOT, "test/trials/support/glibc_only.rb")
    # A framework's gem, of one version for all suites.
    FRAMEWORKS = { "minitest" => "minitest 5.27.0", "test_unit" => "test-unit 3.7.8", "rspec" => "rspec 3.13.2" }.freeze

    # @return [String] why a suite can't be had
    class Missing < StandardError; end

    # @param others [Array<String>] gems that the ways need, with their versions
    def initialize(suite, ruby: RbConfig.ruby, others: [])
      @suite = suite
      @ruby = ruby
      @others = others
    end

    # @return [Hash] see {WayRun#initialize}
    # @raise [Missing]
    def place
      return own_programs if @suite.source == "ours"

      folder = find_folder unless @suite.source == "gem"
      install(@suite.settings["gem"]) if @suite.gem_name
      needs.each { |gem| install(gem) }
      folder ||= gem_folder
      load_path = @suite.settings.fetch("load_path", []).map { |path| File.expand_path(path, folder) }
      { folder:, environment:, prelude:, load_path: }
    end

    private

    def abi = @abi ||= ask("print RbConfig::CONFIG['ruby_version']")
    # A suite whose gems can't be loaded beside those of the others has a folder for them.
    def gems = File.join(CACHE, "gems", @suite.own_gems? ? "#{abi}-#{@suite.name}" : abi)
    def ask(code) = IO.popen([@ruby, "--disable=gems", "-rrbconfig", "-e", code], &:read)

    def needs = [FRAMEWORKS[@suite.framework], *@suite.needs, *@others].compact

    def environment = { "GEM_HOME" => gems, "GEM_PATH" => gems, **@suite.settings.fetch("environment", {}) }

    # The very versions that were installed.
    def prelude
      [@suite.settings["gem"], *needs].compact.map do |gem|
        name, version = gem.split
        "gem(#{name.dump}#{", #{version.dump}" if version})"
      end.push(@suite.settings["prelude"]).compact.join("; ")
    end

    def own_programs
      environment = { "GEM_HOME" => nil, "GEM_PATH" => nil }
      prelude = "require #{File.join(Suite::ROOT, "bin/support/gem_paths.rb").dump}"
      { folder: File.join(__dir__, "programs"), environment:, prelude:, load_path: [] }
    end

    def find_folder
      checkout = CHECKOUTS && File.join(CHECKOUTS, @suite.name)
      return checkout if checkout && File.directory?(checkout)

      kind, what = @suite.source.split(" ", 2)
      case kind
      when "debian" then debian(what)
      when "tarball" then tarball(*what.split)
      else raise Missing, "#{@suite.name}: needs a checkout of #{what} in HEDDLE_TRIAL_SOURCES/#{@suite.name}"
      end
    end

    # The folder of a binary gem ends with its platform.
    def gem_folder
      name = @suite.settings["gem"].tr(" ", "-")
      Dir.glob(File.join(gems, "gems", "#{name}#{"-*" if @suite.binary?}")).first ||
        raise(Missing, "#{@suite.name}: the gem has no folder in #{gems}")
    end

    def debian(package)
      folder = File.join(CACHE, "sources", package.tr("=/", "__"))
      return folder if File.directory?(folder)

      FileUtils.mkdir_p(File.dirname(folder))
      output, status = Open3.capture2e(File.join(__dir__, "fetch_source"), package, folder)
      status.success? or raise Missing, "#{@suite.name}: Debian's source package #{package} can't be had:\n#{output}"
      folder
    end

    # @param path [String] below Debian's mirror: of some source packages it has one file, and not the others
    # @param sum [String] the file's SHA-256
    def tarball(path, sum)
      folder = File.join(CACHE, "sources", File.basename(path).sub(/\.tar\..*/, ""))
      return folder if File.directory?(folder)

      FileUtils.mkdir_p(File.dirname(folder))
      output, status = Open3.capture2e(File.join(__dir__, "fetch_tarball"), path, sum, folder)
      status.success? or raise Missing, "#{@suite.name}: #{path} can't be had:\n#{output}"
      folder
    end

    def install(gem)
      FileUtils.mkdir_p(File.join(gems, "bin")) # RubyGems of Ruby 3.3 expects it
      name, version = gem.split
      # The specification comes last: the folder of a gem that could not be built is there, too.
      return if Dir.glob("#{name}-#{version || "[0-9]*"}{,-*}.gemspec", base: File.join(gems, "specifications")).any?

      # A folder of its own for its programs, which may have the names of another gem's.
      programs = File.join(gems, "bin", gem).tap { |folder| FileUtils.mkdir_p(folder) }
      options = ["--no-document", *(@suite.binary? ? %w[--force] : %w[--platform ruby]), "--install-dir", gems,
                 "--bindir", programs, *("--version" if version), *version]
      output, status = Open3.capture2e({ "GEM_HOME" => gems, "GEM_PATH" => gems, "RUBYOPT" => nil },
                                       @ruby, "-r#{GLIBC_ONLY}", "-S", "gem", "install", *options, name)
      status.success? or raise Missing, "#{@suite.name}: gem install #{gem} failed:\n#{output.lines.last(20).join}"
    end
  end
end
