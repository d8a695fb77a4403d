# frozen_string_literal: true

# Applications require this file. The command requires heddle/runtime instead, because it starts before Rails is loaded.
# So Bundler loads this file, and with it the railtie, after Rails.
require "heddle/runtime"
require "heddle/railtie" if defined?(Rails::Railtie)
