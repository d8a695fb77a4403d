# frozen_string_literal: true

# Makes the gems that bin/setup put into vendor/bundle, and no others, visible to this Ruby and to
# every program that it starts, without the start-up time of Bundler (0.2 s a process).

require "rbconfig"

root = File.expand_path("../..", __dir__)
gems = File.join(root, "vendor/bundle/ruby", RbConfig::CONFIG["ruby_version"])
if ENV["GEM_HOME"] != gems && !defined?(Bundler::ORIGINAL_ENV) && File.directory?(gems)
  ENV["GEM_HOME"] = ENV["GEM_PATH"] = gems
  Gem.clear_paths
end

lib = File.join(root, "lib")
$LOAD_PATH.unshift(lib) unless $LOAD_PATH.include?(lib)
