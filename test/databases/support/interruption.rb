# frozen_string_literal: true

# Something that a program does once, in the middle of a call of the driver.
module Interruption
  class << self
    # @return [#call, nil] what is done at the next {strike}
    attr_writer :next

    # @return [void]
    def strike
      action, @next = @next, nil
      action&.call
    end
  end
end
