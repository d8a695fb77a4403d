# frozen_string_literal: true

require "yaml"

module Trials
  # One entry of suites.yml: whose examples are run, and how.
  class Suite
    ROOT = File.expand_path("../../..", __dir__)
    DATA = File.join(__dir__, "suites.yml")
    EXCLUSIONS = File.join(__dir__, "exclusions.yml")

    # @return [Array<Suite>] in the order of suites.yml
    def self.all
      @all ||= YAML.safe_load_file(DATA).map { |name, settings| new(name, settings) }
    end

    # @param names [Array<String>] empty: all
    def self.named(names)
      return all if names.empty?

      names.map do |name|
        all.find { |suite| suite.name == name } or
          abort "#{name.inspect} is no suite (known: #{all.map(&:name).join(", ")})"
      end
    end

    attr_reader :name, :settings

    def initialize(name, settings)
      @name = name
      @settings = settings
    end

    def gem_name = settings["gem"]&.split&.first
    def gem_version = settings["gem"]&.split&.last
    def framework = settings.fetch("framework")
    def source = settings.fetch("source")
    def beside = settings.fetch("beside", "")
    def server = settings["server"]
    def needs = settings.fetch("needs", [])
    # Whether its gem is not built from its sources.
    def binary? = settings.fetch("binary", false)
    # Whether its gems have a folder of their own.
    def own_gems? = settings.fetch("own_gems", false)
    # Files whose examples start loops of their own, and so run in no other one.
    def own_loop = settings.fetch("own_loop", [])
    # Names of examples that are not run.
    def skipped = settings.fetch("skip", [])
    # Whether only examples count that pass on plain Ruby: those that fail there need what the machine does not have.
    def passing_only? = settings["compare"] == "passing"
    # Seconds without news of an example after which the process is taken to hang.
    def patience = settings.fetch("patience", 60)
    # The Ruby whose own tests they are, such as "3.3"; nil: any.
    def ruby = settings["ruby"]

    # @param folder [String] where the sources are
    # @return [Array<String>] test files, relative to the folder
    def files(folder)
      left_out = settings.fetch("without", []).flat_map { |pattern| Dir.glob(pattern, base: folder) }
      settings.fetch("files").flat_map { |pattern| Dir.glob(pattern, base: folder).sort }.uniq - left_out
    end

    # Files that run in a process of their own each: their examples have the same names, or change the process.
    def apart? = settings.fetch("apart", false)

    # @return [Array<Hash>] `example`, a pattern, and `reason`; `way` where only that one differs
    def exclusions
      all = File.exist?(EXCLUSIONS) && YAML.safe_load_file(EXCLUSIONS, aliases: true)
      @exclusions ||= (all || {}).fetch(name, nil) || []
    end

    # @return [Hash, nil] the exclusion that names this example
    def exclusion(example, way)
      exclusions.find do |entry|
        (entry["way"].nil? || Array(entry["way"]).include?(way)) &&
          File.fnmatch?(entry.fetch("example"), example, File::FNM_DOTMATCH) # RSpec's names begin with "./"
      end
    end
  end
end
