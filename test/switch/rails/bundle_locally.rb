# frozen_string_literal: true

# Required by RUBYOPT while `rails new` runs: what it asks of Bundler is done with the gems that are installed, which
# the lock file names, and without a registry.
ARGV << "--local" if File.basename($PROGRAM_NAME).start_with?("bundle") && %w[install lock].include?(ARGV.first)
