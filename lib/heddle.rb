# frozen_string_literal: true

# Applications require this file, which also loads the railtie if Rails is loaded. The command `heddle` requires only
# heddle/runtime, because it starts before Rails. Bundler then loads this file, and the railtie, after Rails.
require "heddle/runtime"
require "heddle/railtie" if defined?(Rails::Railtie)
