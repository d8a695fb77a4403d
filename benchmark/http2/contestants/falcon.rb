# frozen_string_literal: true

module Bench
  module HTTP2
    module Contestants
      # Falcon makes the certificate of https addresses itself, and keeps it below the home folder.
      class Falcon < HTTP::Contestants::Falcon
        include HTTP2::Contestant

        def command(*) = super.map { |word| word.sub(%r{\Ahttp://}, "#{scheme}://") }
      end
    end
  end
end
