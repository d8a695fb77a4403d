# frozen_string_literal: true

module Heddle
  module CLI
    class Demo
      # The panels of the page. A new one is a file in this folder and a name in this list.
      module Panels
        autoload :Block, "heddle/cli/demo/panels/block"
        autoload :Bottles, "heddle/cli/demo/panels/bottles"
        autoload :Fifty, "heddle/cli/demo/panels/fifty"
        autoload :Live, "heddle/cli/demo/panels/live"
        autoload :Server, "heddle/cli/demo/panels/server"
        autoload :Together, "heddle/cli/demo/panels/together"

        # In the order of the page.
        ALL = [Fifty, Block, Live, Bottles, Together, Server].freeze
      end
    end
  end
end
