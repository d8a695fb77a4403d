# frozen_string_literal: true

# A room's messages go to all its pages, in every worker.
class MessagesController < ApplicationController
  LONGEST = 1_000

  def create
    name, text = %i[name text].map { |key| params.expect(key).first(LONGEST) }
    Turbo::StreamsChannel.broadcast_append_to("room", room, target: "messages", partial: "messages/message",
                                                            locals: { name:, text: })
    render turbo_stream: turbo_stream.replace("form", partial: "messages/form", locals: { room:, name: })
  end

  private

  def room = params.expect(:room_id)
end
