# frozen_string_literal: true

require "erb"

module Heddle
  module CLI
    class Demo
      # The page itself, rendered once.
      class Page
        # @param panels [Array<Panel>]
        # @param assets [Assets]
        def initialize(panels, assets)
          @panels = panels
          @assets = assets
          @html = ERB.new(File.read(File.join(__dir__, "page.html.erb")), trim_mode: "-").result(binding).freeze
        end

        # @return [Array(Integer, Hash, #each)] a Rack answer
        def call(_env)
          Answer.html(@html)
        end

        private

        def asset(name)
          @assets.path(name)
        end

        def source_of(method)
          ERB::Util.html_escape(Panel.source_of(method))
        end
      end
    end
  end
end
