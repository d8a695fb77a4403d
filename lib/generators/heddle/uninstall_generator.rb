# frozen_string_literal: true

require "rails/generators"
require "rbconfig"

module Heddle
  module Generators
    # `bin/rails generate heddle:uninstall` runs `heddle init --undo` in a process that does not load the application.
    class UninstallGenerator < ::Rails::Generators::Base
      desc "Restores the files that heddle:install has changed"

      # @return [void]
      def uninstall
        command = File.expand_path("../../../exe/heddle", __dir__)

        done = system(RbConfig.ruby, command, "init", "--undo", chdir: destination_root)
        exit 1 unless done
      end
    end
  end
end
