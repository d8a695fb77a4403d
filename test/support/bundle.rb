# frozen_string_literal: true

require "bundler/version"
require "digest"
require "fileutils"
require "open3"

# The gems of a Gemfile that bin/setup has installed for this Ruby.
module Bundle
  GEMS = File.expand_path("../../vendor/bundle", __dir__)
  CHECKED = File.expand_path("../../tmp/bundles", __dir__)
  private_constant :GEMS, :CHECKED

  # The environment in which Bundler finds them. The version is named, or Bundler would start again as the one that
  # wrote the lock file, which may be another Ruby's.
  # @param gemfile [String]
  # @return [Hash{String => String, nil}]
  def self.environment(gemfile)
    { "BUNDLE_GEMFILE" => gemfile, "BUNDLE_PATH" => GEMS, "BUNDLER_VERSION" => Bundler::VERSION,
      "GEM_HOME" => nil, "GEM_PATH" => nil, "RUBYLIB" => nil,
      "RUBYOPT" => [*ENV.fetch("RUBYOPT", nil), "-rbundler/setup", *without_time_zones].join(" "), **room_for_objects }
  end

  # A Rails application collects garbage eighteen times while it starts, which is a fifth of its processor time. Under
  # bin/test it begins with the room for objects that it comes to have, but where the nightly runs all as users do.
  def self.room_for_objects = ENV["RUBYOPT"] ? { "RUBY_GC_HEAP_0_INIT_SLOTS" => "400000" } : {}
  private_class_method :room_for_objects

  # Ruby's options end at a blank.
  def self.without_time_zones
    path = File.join(__dir__, "no_time_zones.rb")
    ["-r#{path}"] unless path.match?(/\s/)
  end
  private_class_method :without_time_zones

  # Bundler needs half a second for it: it is asked once, and again when a gem was installed or the Gemfile or its lock
  # file has changed.
  # @param gemfile [String]
  # @return [Boolean]
  def self.installed?(gemfile)
    gems = File.join(GEMS, "ruby", RbConfig::CONFIG["ruby_version"], "specifications")
    times = [gemfile, "#{gemfile}.lock", gems].map { |path| File.mtime(path).to_r if File.exist?(path) }
    checked = File.join(CHECKED, Digest::SHA256.hexdigest([RUBY_DESCRIPTION, gemfile, *times].join(" "))[0, 16])
    return true if File.exist?(checked)

    _, status = Open3.capture2e(environment(gemfile), RbConfig.ruby, "-rbundler/setup", "-e", "exit",
                                chdir: File.dirname(gemfile))
    return false unless status.success?

    FileUtils.mkdir_p(CHECKED)
    FileUtils.touch(checked)
    true
  end
end
