# frozen_string_literal: true

require "bundler/version"
require "open3"

# The gems of a Gemfile that bin/setup has installed for this Ruby.
module Bundle
  GEMS = File.expand_path("../../vendor/bundle", __dir__)
  private_constant :GEMS

  # The environment in which Bundler finds them. The version is named, or Bundler would start again as the one that
  # wrote the lock file, which may be another Ruby's.
  # @param gemfile [String]
  # @return [Hash{String => String, nil}]
  def self.environment(gemfile)
    { "BUNDLE_GEMFILE" => gemfile, "BUNDLE_PATH" => GEMS, "BUNDLER_VERSION" => Bundler::VERSION,
      "GEM_HOME" => nil, "GEM_PATH" => nil, "RUBYLIB" => nil,
      "RUBYOPT" => [*ENV.fetch("RUBYOPT", nil), "-rbundler/setup", *without_time_zones].join(" ") }
  end

  # Ruby's options end at a blank.
  def self.without_time_zones
    path = File.join(__dir__, "no_time_zones.rb")
    ["-r#{path}"] unless path.match?(/\s/)
  end
  private_class_method :without_time_zones

  # @param gemfile [String]
  # @return [Boolean]
  def self.installed?(gemfile)
    _, status = Open3.capture2e(environment(gemfile), RbConfig.ruby, "-rbundler/setup", "-e", "exit",
                                chdir: File.dirname(gemfile))
    status.success?
  end
end
