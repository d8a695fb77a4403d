# frozen_string_literal: true

require "rails/generators"
require "rbconfig"

module Heddle
  module Generators
    # `bin/rails generate heddle:install` runs `heddle init --apply` in a process that does not load the application.
    class InstallGenerator < ::Rails::Generators::Base
      desc "Changes the files that start Puma, so that they start Heddle"
      class_option :keep_puma, type: :boolean, desc: "Keep Puma for development and tests (default except on Linux)"

      # @return [void]
      def install
        command = File.expand_path("../../../exe/heddle", __dir__)
        keep = { true => ["--keep-puma"], false => ["--no-keep-puma"], nil => [] }.fetch(options[:keep_puma])
        done = system(RbConfig.ruby, command, "init", "--apply", *keep, chdir: destination_root)
        exit 1 unless done
      end
    end
  end
end
