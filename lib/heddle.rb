# frozen_string_literal: true

# Applications require this file. The command loads heddle/runtime alone, so that this file is still to be loaded when
# Bundler requires the gems of a Rails application, and Rails is there.
require "heddle/runtime"
require "heddle/railtie" if defined?(Rails::Railtie)
